"""The files themselves: their weight, their form, and words that would turn text into markup."""

import gzip
import pathlib
import re
import subprocess
import tempfile
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
        # Each is a request of the first view.
        self.assertLessEqual(len(FILES), 22)
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

    def test_lint_finds_each_way_to_make_markup_or_a_script_of_a_text(self):
        lint = (ASSETS.parents[2] / "scripts/lint").read_text()
        check = re.search(r"^check_page\(\) \{.*?^\}", lint, re.MULTILINE | re.DOTALL).group()
        planted = [
            "a.innerHTML = text;", "a.outerHTML = text;", 'a.insertAdjacentHTML("beforeend", text);',
            "document.write(text);", "eval(text);", "new Function(text);", 'setTimeout("go()", 1);',
            "setInterval(`go()`, 1);", "frame.srcdoc = text;", "range.createContextualFragment(text);",
            "const t = '<img src=x onerror=\"go()\">';", 'a.setAttribute("onclick", text);', 'a.href = "javascript:go()";',
        ]
        harmless = ["a.addEventListener('click', () => go());", "setTimeout(() => go(), 1);", "this.onchange();"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "Sources/Control/Web/planted.js")
            file.parent.mkdir(parents=True)
            file.write_text("\n".join([*planted, *harmless]) + "\n")
            found = subprocess.run(
                ["bash", "-c", f"found() {{ printf '%s\\n' \"$1\"; }}\n{check}\ncheck_page"], cwd=folder, check=True,
                capture_output=True, text=True).stdout.splitlines()
        numbers = [int(line.split(":")[1]) for line in found]
        self.assertEqual(numbers, list(range(1, len(planted) + 1)))

    def test_every_file_is_used(self):
        text = "\n".join(file.read_text() for file in FILES)
        for file in FILES:
            if file.name != "index.html":
                self.assertRegex(text, rf"(\./|assets/){re.escape(file.name)}", file.name)


if __name__ == "__main__":
    unittest.main()
