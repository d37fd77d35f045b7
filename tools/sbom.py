#!/usr/bin/env python3
"""Lists what a build is made of, as CycloneDX 1.5 in JSON: a software bill of materials.

    python3 tools/sbom.py build/release -o fovea.cdx.json --version 0.1.0 [--target fovea_cli ...] [--part FOLDER ...]

BUILD is a folder that ninja has built TARGETs in (default: all that are installed). Nothing is written by hand: the
headers come from what the compiler read, the libraries from what the linker got, both as ninja knows them, and dpkg says
which package each belongs to. A component is a source package of the distribution, with its version, its licences as
debian/copyright has them for all files, and how it gets in: "linked" as a shared library, "static" as an archive,
"headers" alone. Headers of a Python package (nanobind) are found by their folder, and what was built
of a source package of the distribution in a FOLDER whose file `version` holds its version, by a name like `wheel-curl`. The same build gives the same file.
Needs ninja and dpkg, and nothing of Python but its standard library.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

DEFAULT_TARGETS = ["fovea_cli", "fovea_decoder", "fovea_python", "fovea_video", "fovea_gif", "fovea_tiff", "fovea_avif", "fovea_cuda"]
SPDX = {
    "Apache-2.0": "Apache-2.0",
    "BSD-2-clause": "BSD-2-Clause",
    "BSD-2-Clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause",
    "BSD-3-Clause": "BSD-3-Clause",
    "BSL-1.0": "BSL-1.0",
    "curl": "curl",
    "Expat": "MIT",
    "GPL-2": "GPL-2.0-only",
    "LGPL-2.1+": "LGPL-2.1-or-later",
    "libpng": "libpng-2.0",
    "MIT": "MIT",
    "Zlib": "Zlib",
}
NAMESPACE = uuid.UUID("b3b9a1a8-5c39-5d52-9d53-6a0f6f0d5d3e")  # of serial numbers of this tool
STRENGTH = {"headers": 0, "static": 1, "linked": 2}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def known_targets(build, wanted):
    """Those of the targets that the build has."""
    listed = {line.split(":")[0] for line in run("ninja", "-C", build, "-t", "targets", "all").splitlines()}
    return [target for target in wanted if target in listed]


def inputs_of(build, targets):
    """Objects and libraries that targets are made of, by way of others."""
    return run("ninja", "-C", build, "-t", "inputs", *targets).splitlines()


def headers_of(build, objects):
    """Absolute paths that the compiler read for objects."""
    paths = set()
    for line in run("ninja", "-C", build, "-t", "deps", *objects).splitlines():
        if line.startswith("    /"):
            paths.add(os.path.normpath(line.strip()))
    return paths


def outside(paths, *folders):
    roots = [str(Path(folder).resolve()) + os.sep for folder in folders]
    return [path for path in paths if os.path.isabs(path) and not any(path.startswith(root) for root in roots)]


def packages_of(paths):
    """The package of each path that dpkg knows."""
    found = {}
    candidates = sorted({path for path in paths} | {os.path.realpath(path) for path in paths})
    for begin in range(0, len(candidates), 500):
        done = subprocess.run(["dpkg-query", "-S", *candidates[begin : begin + 500]], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            names, _, path = line.partition(": ")
            found[path] = names.split(",")[0].split(":")[0]
    return {path: found.get(os.path.realpath(path)) or found.get(path) for path in paths}


def sources_of(packages):
    """(source package, its version) by package."""
    form = "${Package}\t${source:Package}\t${source:Version}\n"
    lines = run("dpkg-query", "-W", "-f", form, *sorted(packages)).splitlines()
    return {name: (source, version) for name, source, version in (line.split("\t") for line in lines)}


def licence_of(package):
    return licence_in(Path("/usr/share/doc", package, "copyright"))


def licence_in(path):
    """The licences that debian/copyright gives for all files ("Files: *"), or None."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
        if fields.get("Files", "").split()[:1] == ["*"] and fields.get("License"):
            return fields["License"].strip()
    return None


def python_package(path):
    """(name, version) of the distribution whose folder in site-packages a header is in, or None."""
    match = re.match(r"(.*/(?:site|dist)-packages)/([^/]+)/", path)
    if not match:
        return None
    infos = sorted(Path(match[1]).glob(match[2] + "-*.dist-info"))
    return match[2], infos[0].name[len(match[2]) + 1 : -len(".dist-info")] if infos else None


def how(path):
    name = os.path.basename(path)
    return "linked" if ".so" in name else "static" if name.endswith(".a") else "headers"


def is_of_the_compiler(source):
    """Whether the compiler links its own library, or that of C, which ninja does not see."""
    return source == "glibc" or re.fullmatch(r"gcc-\d+", source) is not None


def debian_components(paths):
    owners = packages_of(paths)
    sources = sources_of({package for package in owners.values() if package})
    components = {}
    for path, package in sorted(owners.items(), key=lambda entry: entry[0]):
        if package is None:
            continue
        name, version = sources[package]
        way = "linked" if is_of_the_compiler(name) else "headers"
        entry = components.setdefault(name, {"version": version, "how": way, "licence": None})
        if STRENGTH[how(path)] > STRENGTH[entry["how"]]:
            entry["how"] = how(path)
        entry["licence"] = entry["licence"] or licence_of(package)
    return components


def part_components(paths, folders):
    """Libraries that were built of source packages, by the folders they were built in."""
    components = {}
    for folder in map(Path, folders):
        root = str(folder.resolve()) + os.sep
        used = [path for path in paths if os.path.realpath(path).startswith(root)]
        if not used:
            continue
        licence = licence_in(folder / "source" / "debian" / "copyright")
        way = max(map(how, used), key=STRENGTH.__getitem__)
        version = (folder / "version").read_text(encoding="utf-8").strip()
        components[folder.name.split("-", 1)[-1]] = {"version": version, "how": way, "licence": licence}
    return components


def component(name, purl, version, way, licence):
    result = {"type": "library", "bom-ref": purl, "name": name, "purl": purl}
    if version:
        result["version"] = version
    if licence:
        result["licenses"] = [{"license": {"id": SPDX[licence]} if licence in SPDX else {"name": licence}}]
    result["properties"] = [{"name": "fovea:included", "value": way}]
    return result


def components_of(build, source, targets, parts):
    inputs = inputs_of(build, targets)
    headers = headers_of(build, [path for path in inputs if path.endswith(".o")])
    libraries = [path for path in inputs if re.search(r"\.(so[.\d]*|a)$", path)]
    used = headers | set(libraries)
    paths = outside(used, build, source)
    result = []
    for name, entry in {**debian_components(paths), **part_components(used, parts)}.items():
        purl = f"pkg:deb/debian/{name}@{entry['version'].replace('+', '%2B').replace('~', '%7E')}?arch=source"
        result.append(component(name, purl, entry["version"], entry["how"], entry["licence"]))
    for name, version in sorted({found for found in map(python_package, paths) if found}, key=str):
        purl = f"pkg:pypi/{name}" + (f"@{version}" if version else "")
        result.append(component(name, purl, version, "static", None))
    return sorted(result, key=lambda entry: entry["bom-ref"])


def document(name, version, components):
    own = f"pkg:generic/{name}@{version}"
    text = json.dumps([own, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(NAMESPACE, text).urn,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": own,
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [entry["bom-ref"] for entry in components]}],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="folder that ninja has built in")
    parser.add_argument("-o", "--output", required=True, help="file to write")
    parser.add_argument("--target", action="append", help="what it is the list of; may be given again")
    parser.add_argument("--part", action="append", default=[], help="folder that a source package was built in")
    parser.add_argument("--name", default="fovea")
    parser.add_argument("--version", required=True)
    arguments = parser.parse_args()
    source = Path(__file__).resolve().parents[1]
    targets = known_targets(arguments.build, arguments.target or DEFAULT_TARGETS)
    if not targets:
        sys.exit(f"{arguments.build}: expected a build of {', '.join(arguments.target or DEFAULT_TARGETS)}, found none")
    components = components_of(arguments.build, source, targets, arguments.part)
    text = json.dumps(document(arguments.name, arguments.version, components), indent=2) + "\n"
    Path(arguments.output).write_text(text, encoding="utf-8")
    print(f"{arguments.output}: {len(components)} components of {', '.join(targets)}")


if __name__ == "__main__":
    main()
