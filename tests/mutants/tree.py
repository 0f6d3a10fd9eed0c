"""A copy of this checkout with an interpreter of its own, in which a source can be changed and tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path

from streamtrain import _native

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
_TIMEOUT_S = 60  # of one test: without its guard it may wait for ever


class Tree:
    """`folder` holds the copy, its virtual environment and its build; other packages come from the running one."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.root, self._folder = folder / "tree", folder
        self._build = folder / "build"
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=_LEFT_OUT)
        self._extension = self.root / "streamtrain" / Path(_native.__file__).name
        shutil.copy2(_native.__file__, self._extension)
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        self.python = environment / "bin" / "python"
        purelib = sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)})
        others = [path for path in sys.path if Path(path).name == "site-packages"]
        (Path(purelib) / "tree.pth").write_text("\n".join([str(self.root), *others]) + "\n")
        command = environment / "bin" / "streamtrain"
        command.write_text(f"#!{self.python}\nimport sys\nfrom streamtrain.cli import main\nsys.exit(main())\n")
        command.chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
            "STREAMTRAIN_TEST_BOOTSTRAP": bootstrap,  # one Kafka for all
        }

    def run_tests(self, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs tests of the copy, up to the first that fails."""
        options = ["-qx", "-p", "no:cacheprovider", "--every=1", f"--timeout={_TIMEOUT_S}", "--timeout-method=thread"]
        command = [self.python, "-m", "pytest", *options, *tests]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=self._environment)

    def change(self, file: str, old: str, new: str) -> None:
        """Replaces `old`, which stands in one place; builds the extension if the source is native."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: expected one place, found {text.count(old)}: {old!r}"
        path.write_text(text.replace(old, new))
        if file.startswith("native/"):
            self._build_extension()

    def restore(self, file: str) -> None:
        """Undoes `change`. The next build compiles the file again, as it is newer than its object."""
        shutil.copy2(ROOT / file, self.root / file)
        os.utime(self.root / file)
        shutil.copy2(_native.__file__, self._extension)

    def _build_extension(self) -> None:
        """The first build compiles all sources; later ones what changed."""
        tools = self._folder / "tools"
        environment = {**os.environ, "PYTHONPATH": str(tools), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
        if not tools.exists():
            requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
            self._call([sys.executable, "-m", "pip", "install", "--quiet", "--target", tools, *requires], environment)
            settings = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
            command = ["cmake", "-G", "Ninja", "-S", self.root / "native", "-B", self._build, *settings]
            self._call(command, environment)
        self._call(["cmake", "--build", self._build], environment)
        shutil.copy2(self._build / self._extension.name, self._extension)

    @staticmethod
    def _call(command: Sequence[str | Path], environment: dict[str, str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
