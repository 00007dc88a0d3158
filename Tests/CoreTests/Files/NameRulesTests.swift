import Core
import Testing

@Suite("NameRules")
struct NameRulesTests {
    @Test(
        "temporary names, system files and Sluice's own names are skipped",
        arguments: [
            "a.part", "a.PART", "a.mp4.partial", "a.filepart", "a.tmp", "a.Temp", "a.crdownload", "a.download", "a.!qB",
            "a.!ut", "a.aria2", "a.opdownload", "a.swp", "~a", "a~", ".~lock.a#", ".#a", ".a.mp4.Xy12aB",
            ".goutputstream-X", "a.lock", "a.incomplete", ".syncthing.a.tmp", ".nfs0001", ".fuse_hidden01", ".DS_Store",
            "._a", "Thumbs.db", "desktop.ini", "@eaDir", "@__thumb", ".Trashes", ".Spotlight-V100", "lost+found",
            "System Volume Information", "$RECYCLE.BIN", ".sluice-release-01J", ".hidden",
        ])
    func temporary(_ name: String) {
        #expect(TemporaryNames.contains(FilePath(name)))
        #expect(!NameRules(include: [], exclude: []).matches(FilePath(name)))
    }

    @Test(
        "names that only resemble those are accepted",
        arguments: ["part", "a.parts", "tmp", "a.mp4", "-rf", "a~b", "thumbs.dbx", "x@eadir", "clip.lock.mp4", "ü"])
    func ordinary(_ name: String) { #expect(NameRules(include: [], exclude: []).matches(FilePath(name))) }

    @Test("hidden names are accepted if an include names them, but never Sluice's own")
    func hidden() {
        let rules = NameRules(include: ["*", ".*"], exclude: [])
        #expect(rules.matches(".clip.mp4"))
        #expect(!rules.matches(".sluice-release-1"))
        #expect(!rules.matches(".clip.mp4.Xy12aB"))
    }

    struct Row: Sendable {
        let include: [String]
        let exclude: [String]
        let path: String
        let takes: Bool
    }

    @Test(
        "exclude precedes include; globs with a slash match the path, others the name",
        arguments: [
            Row(include: [], exclude: [], path: "x/a.txt", takes: true),
            Row(include: ["*.mp4"], exclude: [], path: "x/y/A.MP4", takes: true),
            Row(include: ["*.mp4"], exclude: [], path: "a.txt", takes: false),
            Row(include: ["*.mp4", "*.mkv"], exclude: [], path: "a.mkv", takes: true),
            Row(include: ["*.mp4"], exclude: ["test*"], path: "test1.mp4", takes: false),
            Row(include: ["day/*.mp4"], exclude: [], path: "day/a.mp4", takes: true),
            Row(include: ["day/*.mp4"], exclude: [], path: "a.mp4", takes: false),
            Row(include: [], exclude: ["raw/**"], path: "raw/x/a.mp4", takes: false),
            Row(include: [], exclude: ["raw/**"], path: "raw2/a.mp4", takes: true),
            Row(include: ["*.tmp"], exclude: [], path: "a.tmp", takes: false),
        ])
    func globs(_ row: Row) {
        #expect(NameRules(include: row.include, exclude: row.exclude).matches(FilePath(row.path)) == row.takes)
    }
}
