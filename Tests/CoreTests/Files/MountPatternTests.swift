import Core
import TestKit
import Testing

@Suite("Paths that stand for a folder on each card")
struct MountPatternTests {
    private func pattern(_ path: FilePath, _ mount: FilePath) throws -> MountPattern {
        try #require(MountPattern(path: path, mount: mount))
    }

    private func card(_ point: FilePath, _ fileSystem: String, label: FilePath? = nil) -> MountedCard {
        MountedCard(point: point, fileSystem: fileSystem, label: label ?? point.name)
    }

    private func assign(_ mounted: [MountedCard], known: [Card] = [], fixed: Set<String> = []) throws -> CardAssignment
    {
        var assignment = CardAssignment(known: known, fixed: fixed.union(["card"]))
        assignment.add(mounted, to: "card", try pattern("/media/*/*/DCIM", "/media/*/*"))
        return assignment
    }

    private func names(_ assignment: CardAssignment) -> [FilePath: String] {
        Dictionary(
            assignment.cards.filter(\.isMounted).map { ($0.point, $0.name) }, uniquingKeysWith: { first, _ in first })
    }

    @Test("a mount point without a wildcard, or one that does not begin the path, makes no pattern")
    func noPattern() {
        #expect(MountPattern(path: "/media/card/DCIM", mount: "/media/card") == nil)
        #expect(MountPattern(path: "/srv/DCIM", mount: "/media/*") == nil)
        #expect(MountPattern(path: "/media/*/x", mount: "/") == nil)
        #expect(MountPattern(path: "/media/*", mount: "/media/*")?.rest == "")
    }

    @Test(
        "a wildcard stands for one name of a directory and never for a slash",
        arguments: [
            ("/media/anna/EOS", true), ("/media/anna", false), ("/media/anna/EOS/more", false), ("/media", false),
            ("/mnt/anna/EOS", false), ("/MEDIA/anna/EOS", false), ("/", false),
        ] as [(FilePath, Bool)])
    func matching(point: FilePath, isMeant: Bool) throws {
        #expect(try pattern("/media/*/*/DCIM", "/media/*/*").matches(point) == isMeant)
    }

    @Test("a name with a character set and a question mark matches as in file patterns")
    func sets() throws {
        let cards = try pattern("/media/card[12]?/DCIM", "/media/card[12]?")
        #expect(cards.matches("/media/card1a") && cards.matches("/media/card2b"))
        #expect(!cards.matches("/media/card3a") && !cards.matches("/media/card1"))
    }

    @Test("paths in one of the folders, and paths around one, are told from others")
    func places() throws {
        let cards = try pattern("/media/*/*/DCIM", "/media/*/*")
        #expect(cards.mayContain("/media/anna/EOS/DCIM") && cards.mayContain("/media/anna/EOS/DCIM/1/2"))
        #expect(!cards.mayContain("/media/anna/EOS/backup") && !cards.mayContain("/media/anna/EOS"))
        #expect(cards.mayLie(below: "/media/anna/EOS") && cards.mayLie(below: "/media") && cards.mayLie(below: "/"))
        #expect(!cards.mayLie(below: "/media/anna/EOS/DCIM") && !cards.mayLie(below: "/srv"))
        #expect(cards.fixedFolder == "/media")
        #expect(cards.folder(at: "/media/anna/EOS") == "/media/anna/EOS/DCIM")
    }

    @Test("a card has the name of its label, and keeps it at another mount point")
    func labels() throws {
        let first = try assign([card("/media/a/EOS", "uuid-1"), card("/media/a/GOPRO", "uuid-2")])
        #expect(names(first) == ["/media/a/EOS": "card-EOS", "/media/a/GOPRO": "card-GOPRO"])
        let later = try assign([card("/media/b/EOS1", "uuid-1")], known: first.cards)
        #expect(names(later) == ["/media/b/EOS1": "card-EOS"])
        #expect(later.cards.count == 2)
    }

    @Test("two cards with one label have different names, which stay with them when they swap places")
    func oneLabel() throws {
        let first = try assign([card("/media/a/EOS", "1111-AAAA", label: "EOS")])
        let both = try assign(
            [card("/media/a/EOS", "1111-AAAA", label: "EOS"), card("/media/a/EOS1", "2222-BBBB", label: "EOS")],
            known: first.cards)
        #expect(names(both) == ["/media/a/EOS": "card-EOS", "/media/a/EOS1": "card-EOS-BBBB"])
        let swapped = try assign(
            [card("/media/a/EOS1", "1111-AAAA", label: "EOS"), card("/media/a/EOS", "2222-BBBB", label: "EOS")],
            known: both.cards)
        #expect(names(swapped) == ["/media/a/EOS1": "card-EOS", "/media/a/EOS": "card-EOS-BBBB"])
        let third = try assign([card("/media/a/EOS", "3333-BBBB", label: "EOS")], known: swapped.cards)
        #expect(names(third) == ["/media/a/EOS": "card-EOS-BBBB-2"])
    }

    @Test("a card that is mounted at two points is watched once, at the point where it was")
    func twice() throws {
        let first = try assign([card("/media/a/EOS", "uuid-1")])
        let both = try assign([card("/media/a/AAA", "uuid-1"), card("/media/a/EOS", "uuid-1")], known: first.cards)
        #expect(names(both) == ["/media/a/EOS": "card-EOS"])
        #expect(
            names(try assign([card("/media/a/B", "uuid-9"), card("/media/a/A", "uuid-9")])) == ["/media/a/A": "card-A"])
    }

    @Test("no card gets the name of a folder in the configuration, whatever was known before")
    func taken() throws {
        let first = try assign([card("/media/a/EOS", "1111-AAAA")])
        let now = try assign([card("/media/a/EOS", "1111-AAAA")], known: first.cards, fixed: ["card-EOS"])
        #expect(names(now) == ["/media/a/EOS": "card-EOS-AAAA"])
    }

    @Test("labels of any bytes become names that the command line accepts")
    func bytes() throws {
        let odd = FilePath(bytes: [0x45, 0x20, 0xFF, 0x0A, 0x2F])
        let long = FilePath(bytes: Array(repeating: UInt8(ascii: "x"), count: 500))
        let found = try assign([
            card("/media/a/1", "u1", label: odd), card("/media/a/2", "u2", label: long),
            card("/media/a/3", "u3", label: ""),
            card("/media/a/4", "vfat:/dev/sda1", label: long),
        ])
        for name in names(found).values {
            #expect((1...64).contains(name.utf8.count) && name.utf8.allSatisfy { $0.isLetterOrDigit(or: "_.-") })
        }
        #expect(Set(names(found).values).count == 4)
    }

    @Test("a pattern takes 32 cards; known ones come first, and the others are named")
    func most() throws {
        let known = try assign([card("/media/z/last", "u-last")]).cards
        let many = (10..<50).map { card(FilePath("/media/a/\($0)"), "u-\($0)") } + [card("/media/z/last", "u-last")]
        let found = try assign(many, known: known)
        #expect(names(found).count == CardAssignment.most)
        #expect(names(found)["/media/z/last"] == "card-last")
        #expect(found.leftOut.count == 41 - CardAssignment.most)
        #expect(found.leftOut.allSatisfy { $0.reason == .full })
    }

    @Test(
        "of two disks with one UUID, or two parts of one disk, the one that is left out is named; a bind mount is not")
    func twins() throws {
        func card(_ point: FilePath, device: UInt64 = 7, root: FilePath = "/") -> MountedCard {
            MountedCard(point: point, fileSystem: "u", label: "EOS", device: device, root: root)
        }
        let first = card("/media/a/1")
        #expect(try assign([first, card("/media/a/2")]).leftOut.isEmpty)
        for other in [card("/media/a/2", device: 8), card("/media/a/2", root: "/photos")] {
            let found = try assign([first, other])
            #expect(names(found) == ["/media/a/1": "card-EOS"])
            #expect(found.leftOut == [.init(point: "/media/a/2", reason: .twin(of: "/media/a/1"))])
            #expect(found.leftOut.first?.words.contains("/media/a/1") == true)
            // It stays with the one that it had, whichever comes first in the list of mounts.
            let later = try assign([card("/media/a/0", device: 8), first], known: found.cards)
            #expect(later.leftOut == [.init(point: "/media/a/0", reason: .twin(of: "/media/a/1"))])
        }
    }

    @Test(
        "whatever is mounted in whatever order, a file system keeps one name, and no two have the same",
        arguments: 0..<200)
    func anyOrder(seed: Int) throws {
        var dice = Dice(seed: UInt64(seed))
        var known: [Card] = []
        var assigned: [String: String] = [:]
        for _ in 0..<20 {
            var mounted: [MountedCard] = []
            for number in 0..<8 where dice.next() % 2 == 0 {
                mounted.append(
                    card(
                        FilePath("/media/\(dice.next() % 2)/\(dice.next() % 9)"), "uuid-\(number)",
                        label: ["EOS", "GOPRO"][number % 2]))
            }
            let found = try assign(mounted, known: known)
            for one in found.cards {
                #expect(assigned[one.fileSystem] ?? one.name == one.name)
                assigned[one.fileSystem] = one.name
            }
            #expect(Set(found.cards.map(\.name)).count == found.cards.count)
            #expect(Set(found.cards.filter(\.isMounted).map(\.fileSystem)) == Set(mounted.map(\.fileSystem)))
            known = found.cards
        }
    }
}
