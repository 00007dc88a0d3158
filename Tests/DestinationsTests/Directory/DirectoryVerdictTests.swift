import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Destinations

@Suite("DirectoryVerdict")
struct DirectoryVerdictTests {
    private static let hold = Remedy.holdDestination(after: nil)

    /// docs/destinations/directory.md, as far as it does not depend on a name.
    static let target: [(errors: [CInt], code: String, remedy: Remedy)] = [
        ([ENOENT, ENOTDIR, ELOOP, ENODEV, ENXIO], "target_missing", hold),
        (
            [
                ESTALE, ENOTCONN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ETIMEDOUT, ECONNREFUSED, ECONNRESET,
                ECONNABORTED, ESHUTDOWN, ENOLINK,
            ], "target_away", hold
        ),
        ([EIO, EREMOTEIO, EUCLEAN], "target_broken", hold), ([ENOSPC], "target_full", .noRoom(after: nil)),
        ([EDQUOT], "target_quota", .noRoom(after: nil)), ([EROFS], "target_read_only", .misconfigured),
        ([EACCES, EPERM], "target_denied", .misconfigured),
        ([ENOLCK, EOPNOTSUPP, ENOSYS, EXDEV], "target_unable", .misconfigured),
        ([EFBIG], "file_too_large", .failUpload),
        ([EBUSY, EAGAIN, ETXTBSY, EEXIST, EINTR], "target_busy", .retry(after: nil)),
        ([ENOMEM, EMFILE, ENFILE, EPROTO, EINVAL], "target_failed", hold),
    ]
    static let name: [(errors: [CInt], code: String, remedy: Remedy)] = [
        ([ENAMETOOLONG, EINVAL, EILSEQ], "name_refused", .failUpload),
        ([ELOOP, ENOTDIR, EISDIR], "folder_in_the_way", .refused(after: nil)),
    ]

    @Test("an error of the folder decides about all its uploads", arguments: target.indices)
    func ofTarget(_ row: Int) {
        let (errors, code, remedy) = Self.target[row]
        for error in errors {
            let verdict = DirectoryVerdict(error, about: .target)
            #expect(verdict.code == code, "\(error)")
            #expect(verdict.remedy == remedy, "\(error)")
        }
    }

    @Test("an error of a name concerns this file only", arguments: name.indices)
    func ofName(_ row: Int) {
        let (errors, code, remedy) = Self.name[row]
        for error in errors {
            let verdict = DirectoryVerdict(error, about: .name)
            #expect(verdict.code == code, "\(error)")
            #expect(verdict.remedy == remedy, "\(error)")
        }
    }

    @Test("a folder error is the same for every operation")
    func eitherWay() {
        for error in [ENOSPC, EDQUOT, EROFS, EACCES, EIO, ESTALE, ENOTCONN, EFBIG] {
            #expect(DirectoryVerdict(error, about: .name) == DirectoryVerdict(error, about: .target))
        }
    }

    @Test("every error that needs a person names the remedy")
    func remedies() {
        for (errors, code, remedy) in Self.target + Self.name where code != "target_busy" && code != "target_failed" {
            for error in errors {
                let verdict = DirectoryVerdict(error, about: remedy == .refused(after: nil) ? .name : .target)
                #expect(!verdict.advice.isEmpty || verdict.code == "target_failed", "\(error)")
            }
        }
        #expect(
            DirectoryVerdict(ENOTDIR, about: .target).advice.contains("not a folder"),
            "the advice names no mount and no folder to create")
    }

    @Test("no disk or mount error is final for a file")
    func neverFinal() {
        let final: Set<CInt> = [EFBIG]
        for error in CInt(1)..<134 where !final.contains(error) {
            #expect(DirectoryVerdict(error, about: .target).remedy != .failUpload, "\(error)")
        }
    }

    @Test("the manual has every code")
    func manual() throws {
        let page = Repository.root.appending("docs/destinations/directory.md")
        let text = String(decoding: try Files.read(page), as: UTF8.self)
        for (_, code, _) in Self.target + Self.name { #expect(text.contains("`\(code)`"), "\(code)") }
        for code in ["not_mounted", "no_marker", "target_replaced", "target_silent", "read_back_differs"] {
            #expect(text.contains("`\(code)`"), "\(code)")
        }
    }
}
