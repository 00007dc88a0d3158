import Testing

@testable import Destinations

@Suite("XML of other programs")
struct XMLValueTests {
    private func read(_ text: String) -> XMLValue? { XMLValue.read(Array(text.utf8)) }

    @Test("elements are read by name, with any namespaces, spaces and other content")
    func read() throws {
        let value = try #require(
            read(
                """
                  \n<?xml version="1.0" encoding="UTF-8"?>
                <s3:List xmlns:s3="http://s3.example/"> <!-- none -->
                  <Part a="b"><PartNumber> 1 </PartNumber><ETag>&quot;a&amp;b&quot;</ETag></Part>
                  <Part><PartNumber>2</PartNumber><ETag/></Part><Other><![CDATA[<x>]]></Other>
                </s3:List>

                """))
        #expect(value.name == "List")
        #expect(value.all("Part").map { $0["PartNumber"]?.whole } == [1, 2])
        #expect(value.all("Part").map { $0["ETag"]?.text } == ["\"a&b\"", nil])
        #expect(value["Other"]?.text == "<x>")
        #expect(value["Missing"] == nil)
    }

    @Test(
        "invalid, truncated or expanding XML is rejected",
        arguments: [
            "", "   ", "hello", "<a>", "<a></b>", "<a/><b/>", "<html><br></html>", "<a>\u{1}</a>", "{\"a\": 1}",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "<!DOCTYPE html><html></html>",
            String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40),
        ])
    func refused(_ text: String) { #expect(read(text) == nil) }

    @Test("any text survives writing and reading")
    func escaped() throws {
        for text in ["a", "<&>\"'", "é視\r\n\t", "]]>"] {
            #expect(try #require(read("<a>x\(XMLValue.escaped(text))x</a>")).text == "x\(text)x")
        }
        #expect(XMLValue.escaped("a\u{0}b") == "ab")
    }

    @Test("numbers are plain, and not negative", arguments: ["-1", "1e3", "0x10", "99999999999999999999", "1 2", ""])
    func numbers(_ text: String) { #expect(read("<a>\(text)</a>")?.whole == nil) }
}
