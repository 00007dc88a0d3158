"""The files themselves: their weight, their form, and words that would turn text into markup."""

import gzip
import re
import unittest

from page_server import ASSETS

FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|DOMParser"
    r"|setHTML|srcdoc|javascript:|\son[a-z]+\s*=\s*[\"']|\bstyle\s*=\s*[\"']|https?://(?!www\.w3\.org/2000/svg)")
FILES = sorted(ASSETS.iterdir())


class AssetTest(unittest.TestCase):
    def test_all_files_together_are_light(self):
        sizes = [file.stat().st_size for file in FILES]
        packed = [len(gzip.compress(file.read_bytes(), 9)) for file in FILES]
        print(f"{len(FILES)} files, {sum(sizes)} bytes, {sum(packed)} with gzip -9", end=" ")
        self.assertLessEqual(len(FILES), 20)
        self.assertLessEqual(sum(sizes), 250_000)

    def test_each_file_is_short_and_narrow(self):
        for file in FILES:
            lines = file.read_text().splitlines()
            self.assertLessEqual(len(lines), 400, file.name)
            self.assertEqual([number for number, line in enumerate(lines, 1) if len(line) > 120], [], file.name)

    def test_no_file_turns_text_into_markup_or_names_another_origin(self):
        for file in FILES:
            found = [line for line in file.read_text().splitlines() if FORBIDDEN.search(line)]
            self.assertEqual(found, [], file.name)

    def test_every_file_is_used(self):
        text = "\n".join(file.read_text() for file in FILES)
        for file in FILES:
            if file.name != "index.html":
                self.assertRegex(text, rf"(\./|assets/){re.escape(file.name)}", file.name)


if __name__ == "__main__":
    unittest.main()
