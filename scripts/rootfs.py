#!/usr/bin/env python3
"""The image's files, from Debian packages and locked wheels; no daemon and no root needed.

    rootfs.py base DEST        everything but Weir's own code
    rootfs.py weir BASE DEST   Weir's own code, to be laid over BASE

scripts/rootfs_pipeline.py adds what the pipeline's image has besides. The Dockerfile and scripts/image.py both make the
images' layers with these two scripts, so they make the same images.
Debian's packages come through apt, which checks them: those of bookworm through the machine's own apt, one library of a
newer release through an apt of its own (scripts/apt.sh). Wheels come through pip, by hash. Everything is cached.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

REPO = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("WEIR_CACHE", Path.home() / ".cache" / "weir")) / "image"
SUITE = "bookworm"
PYTHON = "python3.11"
SITE = f"usr/local/lib/{PYTHON}/dist-packages"
UID = 10001

# Packages for the interpreter, the wheels' libraries, and for `kubectl exec`. None of them installs or compiles.
PACKAGES = (
    "base-files",
    "busybox-static",
    "ca-certificates",
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "media-types",
    "netbase",
    "python3.11-minimal",
    "zlib1g",
)

# crypto_mb (weir.crypto.multibuffer) comes from a newer release: bookworm has none, and trixie's Ed25519 is broken. It
# needs nothing of libc and libssl that bookworm's do not have. There is none for ARM.
NEWER_SUITE = "forky"
NEWER_PACKAGE = "libcrypto-mb"
NEWER_ARCHITECTURES = ("amd64",)

# Left out of the packages: documentation (licences stay), locales, character set tables, Python's tests and installers.
LEFT_OUT = re.compile(
    r"""
      usr/share/(?!doc|ca-certificates|base-files|mime).*
    | usr/share/doc/[^/]+/(?!copyright$).*
    | usr/lib/[^/]+/gconv/.*  | usr/lib/[^/]+/audit/.*  | usr/lib/locale/.*  | usr/lib/mime/.*
    | usr/lib/python3\.11/(test|idlelib|lib2to3|ensurepip|pydoc_data|tkinter|turtledemo|distutils|venv|unittest/test)/.*
    | usr/lib/python3\.11/(config-[^/]*|sitecustomize\.py|.*/__pycache__/.*)
    | usr/lib/python3\.11/lib-dynload/(_curses|_dbm|readline|nis|_test|_xxtest|xx|_ctypes_test|_crypt)[^/]*
    | usr/sbin/(?!ldconfig).*
    | etc/(update-motd\.d|dpkg|default|profile\.d|skel|ld\.so\.conf\.d|python3\.11|motd|issue.*|host\.conf)(/.*)?
    | etc/ca-certificates/.*  | (home|root|boot|media|mnt|srv|opt|proc|sys|dev|run)(/.*)?
    | usr/(games|src|include)/.*  | var/(backups|local|mail|spool|lock|tmp)(/.*)?
    """,
    re.VERBOSE,
)
# Left out of the wheels: type stubs, sources of compiled modules, tests.
WHEEL_LEFT_OUT = re.compile(
    r".*\.(pyi|pyx|pxd|pxi|c|h|cpp|hpp|a)$|(.*/)?(tests?|testing)/.*|bin/.*|.*/__pycache__/.*|\.lock$"
)
WHEEL_KEPT = re.compile(r"(.*\.dist-info|opentelemetry)/.*")
# Packages kept as a zip, which Python imports from as it does from a directory. kubernetes has 1,900 generated modules:
# 75 MB of files, of which the operator loads a few dozen. As a zip the whole package takes 8 MB.
ZIPPED = ("kubernetes",)

BUSYBOX = """
    cat chmod cp cut date df du env false find grep head hostname id kill ls mkdir mv nc netstat nslookup ps pwd rm
    rmdir sed sh sleep sort tail tar tee test top touch tr true uname wc wget which xargs
"""

ENTRY = f"""#!/usr/bin/{PYTHON}
import sys

from weir.cli.main import main

sys.exit(main())
"""


class ImageError(Exception):
    """Something the person at the keyboard can put right; printed as one line."""


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ImageError(
            f"{' '.join(str(part) for part in command[:3])} …: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout


# ---- Debian packages


def debs(packages: tuple[str, ...] = PACKAGES) -> list[tuple[str, str]]:
    """(file name, SHA-256) of each package, as apt would fetch it now."""
    release = Path("/etc/os-release")
    if not shutil.which("apt-get") or not release.exists() or f"VERSION_CODENAME={SUITE}" not in release.read_text():
        raise ImageError(
            f"the image is made from Debian {SUITE}'s packages, and this machine's apt has others: use the Dockerfile"
        )
    try:
        found = offered(packages, {})
    except ImageError:
        run("apt-get", "update")
        found = offered(packages, {})
    if packages is PACKAGES and run("dpkg", "--print-architecture").strip() in NEWER_ARCHITECTURES:
        found += offered((crypto_mb(),), newer_apt())
    return sorted(found)


def offered(packages: tuple[str, ...], env: dict[str, str]) -> list[tuple[str, str]]:
    """(file name, SHA-256) of each of these packages, by apt's index."""
    printed = run("apt-get", "download", "--print-uris", *packages, env=env)
    found = [
        (line.split()[1], line.rsplit("SHA256:", 1)[1].strip()) for line in printed.splitlines() if "SHA256:" in line
    ]
    if len(found) != len(packages):
        raise ImageError(f"apt knows {len(found)} of {len(packages)} packages: run apt-get update")
    return found


def newer_apt() -> dict[str, str]:
    """The environment in which apt-get fetches from the newer release."""
    state = CACHE / f"apt-{NEWER_SUITE}"
    if not (state / "ready").exists():
        shutil.rmtree(state, ignore_errors=True)
        run("bash", REPO / "scripts/apt.sh", NEWER_SUITE, state)
        (state / "ready").touch()
    return {"APT_CONFIG": str(state / "conf")}


def crypto_mb() -> str:
    """The library's package. Its name changes with the version, and the development package knows it."""
    printed = run("apt-cache", "depends", f"{NEWER_PACKAGE}-dev", env=newer_apt())
    found = re.search(rf"Depends: ({NEWER_PACKAGE}\S+)", printed)
    if found is None:
        raise ImageError(f"Debian {NEWER_SUITE} has no crypto_mb")
    return found[1]


def download_debs(wanted: list[tuple[str, str]], directory: Path) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / name for name, _ in wanted]
    missing = [file.name.split("_", 1)[0] for file in files if not file.exists()]
    # apt drops to its own user when run by root, and cannot write here then.
    download = ("apt-get", "-o", "APT::Sandbox::User=root", "download")
    if own := [name for name in missing if not name.startswith(NEWER_PACKAGE)]:
        run(*download, *own, cwd=directory)
    if newer := [name for name in missing if name.startswith(NEWER_PACKAGE)]:
        try:
            run(*download, *newer, cwd=directory, env=newer_apt())
        except ImageError:
            shutil.rmtree(CACHE / f"apt-{NEWER_SUITE}")  # the index in the cache is older than the mirror's packages
            raise
    for file, (_, expected) in zip(files, wanted, strict=True):
        if hashlib.sha256(file.read_bytes()).hexdigest() != expected:
            file.unlink()
            raise ImageError(f"{file.name} is not what apt's index promises; run it again")
    return files


def unpack_deb(deb: Path, root: Path) -> None:
    """Extract onto a merged /usr, without maintainer scripts and without what LEFT_OUT names."""
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extraction_filter = lambda member, _path: member  # Debian's archives are trusted: apt checked them
        for member in tar:
            path = str(PurePosixPath(member.name))
            path = re.sub(r"^(bin|sbin|lib|lib64)(?=/|$)", r"usr/\1", path)
            if path == "." or LEFT_OUT.fullmatch(path):
                continue
            member.name = path
            member.uid, member.gid = os.getuid(), os.getgid()
            if member.islnk():
                member.linkname = re.sub(r"^(\./)?(bin|sbin|lib|lib64)/", r"usr/\2/", member.linkname)
            tar.extract(member, root)
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True, exist_ok=True)
    # Scanners look here for what is installed where there is no dpkg.
    (status / deb.name.split("_", 1)[0]).write_text(run("dpkg-deb", "-f", deb))


def settle_system(root: Path) -> None:
    """Do the part of the packages' maintainer scripts that is needed."""
    etc = root / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(
        f"root:x:0:0:root:/root:/bin/sh\nweir:x:{UID}:{UID}:Weir:/var/lib/weir:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    )
    (etc / "group").write_text(f"root:x:0:\nweir:x:{UID}:\nnogroup:x:65534:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    certificates = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = etc / "ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(certificate.read_text() for certificate in certificates))
    shutil.rmtree(root / "usr/share/ca-certificates")
    (etc / "ssl/cert.pem").unlink(missing_ok=True)
    (root / "usr/lib/ssl").mkdir(parents=True, exist_ok=True)
    for name, target in (("cert.pem", "/etc/ssl/certs/ca-certificates.crt"), ("certs", "/etc/ssl/certs")):
        (root / "usr/lib/ssl" / name).unlink(missing_ok=True)
        (root / "usr/lib/ssl" / name).symlink_to(target)
    for name in BUSYBOX.split():
        (root / "usr/bin" / name).unlink(missing_ok=True)
        (root / "usr/bin" / name).symlink_to("busybox")
    (root / "usr/bin/python3").symlink_to(PYTHON)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/lib/weir").mkdir(parents=True, exist_ok=True)


# ---- Python packages


def root_python(root: Path) -> tuple[list[str | Path], dict[str, str]]:
    """The image's own interpreter, run from outside: by its own loader, against its own libraries."""
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    loader = next((root / "usr").glob("lib*/**/ld-linux*"))
    command: list[str | Path] = [loader, "--library-path", libraries, root / "usr/bin" / PYTHON]
    return command, {"PYTHONHOME": str(root / "usr"), "PYTHONDONTWRITEBYTECODE": "1"}


def install_wheels(python_root: Path, root: Path, requirements: Path, left_out: re.Pattern[str]) -> None:
    """Unpack locked wheels into `root`, without what `left_out` names. The interpreter is that of `python_root`."""
    import pip  # the environment's own; Weir does not depend on it

    python, env = root_python(python_root)
    wheelhouse = CACHE / "pip"
    tools = Path(pip.__file__).parent.parent
    wheelhouse.mkdir(parents=True, exist_ok=True)
    pip_command: list[str | Path] = [*python, "-m", "pip", "--disable-pip-version-check", "-q"]
    env |= {"PYTHONPATH": str(tools), "PIP_ROOT_USER_ACTION": "ignore"}
    with tempfile.TemporaryDirectory() as staging:
        run(
            *pip_command,
            *("install", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile"),
            *("--ignore-installed", "--cache-dir", wheelhouse, "--prefix", staging, "-r", requirements),
            env=env,
        )
        prefix = Path(staging) / "local"  # as Debian's Python has it
        site = prefix / Path(SITE).relative_to("usr/local")
        for file in sorted(site.rglob("*")):
            path = str(file.relative_to(site))
            if file.is_dir() or (left_out.fullmatch(path) and not WHEEL_KEPT.fullmatch(path)):
                continue
            place(file, root / SITE / path)


def zip_package(site: Path, package: str) -> None:
    """Replace a package by a zip beside it, and a .pth file that puts the zip on Python's path."""
    archive = site / f"{package}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted((site / package).rglob("*")):
            if file.is_file():
                # Without a time: the same wheel gives the same bytes.
                out.writestr(zipfile.ZipInfo(str(file.relative_to(site))), file.read_bytes(), zipfile.ZIP_DEFLATED)
    shutil.rmtree(site / package)
    (site / f"{package}.pth").write_text(f"/{SITE}/{archive.name}\n")


def place(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def compile_python(python_root: Path, root: Path, paths: Iterable[str], mode: str) -> None:
    """Byte code beforehand, since the root file system is read-only; by hash, since layers carry no times."""
    python, env = root_python(python_root)
    for path in paths:
        # -s and -p: tracebacks name the path inside the image.
        options = ("-q", "-j", "2", "--invalidation-mode", mode, "-s", root, "-p", "/")
        run(*python, "-m", "compileall", *options, root / path, env=env)


def base(root: Path, wanted: list[tuple[str, str]] | None = None) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "sys", "run", "home", "var"):
        (root / name).mkdir(exist_ok=True)
    for deb in download_debs(wanted or debs(), CACHE / "debs"):
        unpack_deb(deb, root)
    settle_system(root)
    install_wheels(root, root, REPO / "requirements/run.txt", WHEEL_LEFT_OUT)
    for package in ZIPPED:
        zip_package(root / SITE, package)
    compile_python(root, root, (f"usr/lib/{PYTHON}", SITE), "unchecked-hash")


def build_tools(directory: Path) -> dict[str, str]:
    """The locked setuptools for pip to build Weir's wheel with; the environment's own when it is that one."""
    lines = (REPO / "requirements/dev.txt").read_text()
    found = re.search(r"^setuptools==(\S+)(.*\n)((?: .*\n)*)", lines, re.MULTILINE)
    if found is None:
        raise ImageError("requirements/dev.txt has no setuptools: run make lock")
    if importlib.util.find_spec("setuptools") and importlib.metadata.version("setuptools") == found[1]:
        return {}
    (directory / "build.txt").write_text(found[0])
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--require-hashes")
    run(*pip, "--target", directory / "tools", "-r", directory / "build.txt")
    return {"PYTHONPATH": str(directory / "tools")}


def weir(root: Path, python_root: Path) -> None:
    """Weir's own packages: a wheel made from the tree as it is, unpacked into `root`."""
    with tempfile.TemporaryDirectory() as scratch:
        env = {"PIP_ROOT_USER_ACTION": "ignore", **build_tools(Path(scratch))}
        tree = Path(scratch) / "tree"
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache")
        for name in ("services", "operator"):
            shutil.copytree(REPO / name, tree / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            if (REPO / name).exists():
                shutil.copy2(REPO / name, tree / name)
        run(
            *(
                sys.executable,
                "-m",
                "pip",
                "--disable-pip-version-check",
                "wheel",
                "-q",
                "--no-deps",
                "--no-build-isolation",
            ),
            *("--no-cache-dir", "-w", scratch, tree),
            env=env,
        )
        wheel = next(Path(scratch).glob("weir-*.whl"))
        site = root / SITE
        site.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    entry = root / "usr/local/bin/weir"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text(ENTRY)
    entry.chmod(0o755)
    # Checked by hash: a file that live update replaces is noticed.
    compile_python(python_root, root, (f"{SITE}/weir", f"{SITE}/weir_operator"), "checked-hash")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("base").add_argument("dest", type=Path)
    command = commands.add_parser("weir")
    command.add_argument("base", type=Path)
    command.add_argument("dest", type=Path)
    options = parser.parse_args()
    try:
        if options.command == "base":
            base(options.dest)
        else:
            weir(options.dest, options.base)
    except (ImageError, OSError, subprocess.CalledProcessError) as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
