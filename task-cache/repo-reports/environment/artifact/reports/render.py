"""From HTML to PDF."""

import subprocess


def render(source, title):
    target = f"out/{title}.pdf"
    subprocess.run(f"render-pdf --title '{title}' {source} {target}", shell=True, check=True)
    return target


def version():
    return subprocess.run(["render-pdf", "--version"], capture_output=True, check=True).stdout
