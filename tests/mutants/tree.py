"""A copy of this checkout with an interpreter of its own, in which a source can be changed and its tests run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from streamtrain import _native

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
_TIMEOUT_S = 180  # of a test without a mark of its own: many a guard is one against waiting for ever


class Tree:
    """`folder` holds the copy and its virtual environment; packages other than ours come from the running one."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=_LEFT_OUT)
        self._extension = self.root / "streamtrain" / Path(_native.__file__).name
        shutil.copy2(_native.__file__, self._extension)
        self._whole = folder / self._extension.name
        shutil.copy2(_native.__file__, self._whole)
        self._build = folder / "build"
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        self.python = environment / "bin" / "python"
        purelib = sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)})
        others = [path for path in sys.path if Path(path).name == "site-packages"]
        (Path(purelib) / "tree.pth").write_text("\n".join([str(self.root), *others]) + "\n")
        command = environment / "bin" / "streamtrain"
        command.write_text(f"#!{self.python}\nimport sys\nfrom streamtrain.cli import main\nsys.exit(main())\n")
        command.chmod(0o755)

    def test(self, node: str) -> subprocess.CompletedProcess[str]:
        """Runs one test of the copy."""
        return subprocess.run(
            [
                self.python, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "", "--every", "1",
                f"--timeout={_TIMEOUT_S}", node,
            ],
            cwd=self.root, capture_output=True, text=True, timeout=5 * _TIMEOUT_S,
            env={key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")},
        )  # fmt: skip

    def change(self, file: str, old: str, new: str) -> None:
        """Replaces the one place where `old` stands; a native source is built."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: expected one place, found {text.count(old)}: {old!r}"
        path.write_text(text.replace(old, new))
        if file.startswith("native/"):
            self.build()

    def restore(self, file: str) -> None:
        shutil.copy2(ROOT / file, self.root / file)
        os.utime(self.root / file)  # newer than what was built from the changed one
        if file.startswith("native/"):
            shutil.copy2(self._whole, self._extension)

    def build(self) -> None:
        isolated = [] if importlib.util.find_spec("scikit_build_core") else ["--build-isolation"]
        target = self._build.parent / "built"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(target)]
        command += isolated or ["--no-build-isolation"]
        command += [f"--config-settings=build-dir={self._build}", str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        shutil.copy2(target / "streamtrain" / self._extension.name, self._extension)
