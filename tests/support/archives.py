"""Reads the entries of archives (.pt2 files of torch.export.save, .zip), and writes archives of entries: the same bytes for the same
ones. Needs no torch."""

import io
import re
import zipfile


def entries(archive):
    """[(name, bytes), …] of an archive, in its order. archive: its path, or a file that can seek."""
    with zipfile.ZipFile(archive) as source:
        return [(info.filename, source.read(info)) for info in source.infolist()]


def packed(pairs, is_stored=lambda name: False):
    """The bytes of an archive of (name, bytes) pairs. is_stored: of a name, whether that entry is not compressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in pairs:
            method = zipfile.ZIP_STORED if is_stored(name) else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), data, method)  # without a date
    return target.getvalue()


def without_folders(name, data):
    """An entry's bytes without the folders of this machine, which are in the stack traces of a program's JSON. It stays visible what
    is in an installed package: the importer names the user's lines."""
    if not name.endswith(".json"):
        return data
    text = re.sub(r'File \\"[^"]*?/site-packages/', r'File \\"<packages>/', data.decode())
    text = re.sub(r'File \\"/[^"]*/', r'File \\"', text)
    return text.replace('File \\"<packages>/', 'File \\"/usr/lib/python3/site-packages/').encode()
