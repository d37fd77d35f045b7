import json
import subprocess


def test_the_command_finds_the_decoder_of_its_package(program):
    done = subprocess.run([program, "env", "--json"], capture_output=True, text=True, check=True)
    assert "fovea-decoder" in (found := json.loads(done.stdout)["decode processes"]), found
    assert not found.startswith("not used"), found
