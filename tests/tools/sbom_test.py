"""What tools/sbom.py finds in a build of a program that reads headers and is linked with a library."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"

SOURCE = "#include <zlib.h>\n#include <dlpack/dlpack.h>\nint main() { return zlibVersion()[0] == '0'; }\n"
NINJA = """rule compile
  command = c++ -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = c++ $in -o $out
build own.o: compile own.cpp
build program: link own.o {library}
build fovea_cli: phony program
"""


@unittest.skipUnless(shutil.which("ninja") and shutil.which("dpkg-query"), "needs ninja and dpkg")
class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.build = Path(cls.folder.name)
        library = subprocess.run(["c++", "-print-file-name=libz.so"], check=True, capture_output=True, text=True)
        (cls.build / "own.cpp").write_text(SOURCE)
        (cls.build / "build.ninja").write_text(NINJA.format(library=library.stdout.strip()))
        subprocess.run(["ninja", "-C", cls.build, "fovea_cli"], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def made(self, name):
        path = self.build / name
        command = [sys.executable, str(TOOLS / "sbom.py"), str(self.build), "-o", str(path), "--version", "1.2.3"]
        subprocess.run(command, check=True, capture_output=True)
        return path.read_text()

    def test_lists_what_is_linked_and_what_is_read(self):
        document = json.loads(self.made("list.json"))
        self.assertEqual((document["bomFormat"], document["specVersion"]), ("CycloneDX", "1.5"))
        self.assertEqual(document["metadata"]["component"]["version"], "1.2.3")
        found = {entry["name"]: entry for entry in document["components"]}
        ways = {name: entry["properties"][0]["value"] for name, entry in found.items()}
        self.assertEqual((ways["zlib"], ways["dlpack"], ways["glibc"]), ("linked", "headers", "linked"))
        self.assertNotIn("openssl", found)
        version = subprocess.run(
            ["dpkg-query", "-W", "-f", "${source:Version}", "zlib1g-dev"], check=True, capture_output=True, text=True
        )
        self.assertEqual(found["zlib"]["version"], version.stdout)
        self.assertEqual(found["zlib"]["licenses"], [{"license": {"id": "Zlib"}}])
        self.assertEqual(set(document["dependencies"][0]["dependsOn"]), {entry["bom-ref"] for entry in found.values()})

    def test_the_same_build_gives_the_same_file(self):
        self.assertEqual(self.made("first.json"), self.made("second.json"))

    def test_a_build_of_nothing_known_is_an_error(self):
        command = [sys.executable, str(TOOLS / "sbom.py"), str(self.build), "-o", str(self.build / "none.json")]
        done = subprocess.run([*command, "--version", "1", "--target", "none"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected a build of none, found none", done.stderr)


if __name__ == "__main__":
    unittest.main()
