import Core
import Testing

@Suite("Declarations in Swift files")
struct DeclarationsTests {
    private static let sample = """
        internal import Core
        @testable import Store

        /// func commented()
        package struct Outer<Item>: Sendable where Item: Sendable {
            package private(set) var stored: [Int] = []
            static let name = "one_word", text = "two words"
            @Sendable func act(_ first: Int) -> Int {
                let local = 1
                func inner() {}
                return local
            }
            enum Kind: String { case one, two(Int, String), three }
            init?(_ text: String) { nil }
            class Inner {
            }
            var later: Int { 0 }
        }

        extension Outer.Kind {
            var shown: String {
                switch self {
                case one: \"""
                    func inText() {}
                }
                    \"""
                default: ""
                }
            }
            typealias Alias = Int
        }

        private func global() {}
        """

    private static let found = {
        var found = Declarations()
        found.read(Array(sample.utf8), of: "Sources/Sample/File.swift")
        return found
    }()

    @Test("types, and what is nested in them")
    func types() {
        #expect(Set(Self.found.types.keys) == ["Outer", "Kind", "Inner", "Alias"])
        #expect(Self.found.globals.keys.sorted() == ["Outer", "global"])
    }

    @Test("members belong to the type that directly contains them")
    func members() {
        let members = Dictionary(grouping: Self.found.members.keys, by: \.type).mapValues { Set($0.map(\.name)) }
        #expect(members["Outer"] == ["stored", "name", "act", "Kind", "init", "Inner", "later"])
        #expect(members["Kind"] == ["one", "two", "three", "shown", "Alias"])
        #expect(members.count == 2)
    }

    @Test("neither local names nor text count")
    func locals() {
        let known: Set = ["act", "global"]
        #expect(Self.found.functions.isSuperset(of: known))
        for name in ["local", "inner", "inText", "commented"] { #expect(Self.found.names[name] == nil, "\(name)") }
    }

    @Test("literals of one word, and imports")
    func words() {
        #expect(Self.found.literals.contains("one_word"))
        #expect(!Self.found.literals.contains("two words"))
        #expect(Self.found.imports["Sources/Sample/File.swift"] == ["Core", "Store"])
    }
}
