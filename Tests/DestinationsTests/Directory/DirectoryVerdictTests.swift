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
    static let target: [(errors: [CInt], code: Failure.Code, remedy: Remedy)] = [
        ([ENOENT, ENOTDIR, ELOOP, ENODEV, ENXIO], .targetMissing, hold),
        (
            [
                ESTALE, ENOTCONN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ETIMEDOUT, ECONNREFUSED, ECONNRESET,
                ECONNABORTED, ESHUTDOWN, ENOLINK,
            ], .targetAway, hold
        ),
        ([EIO, EREMOTEIO, EUCLEAN], .targetBroken, hold), ([ENOSPC], .targetFull, .outOfSpace(after: nil)),
        ([EDQUOT], .targetQuota, .outOfSpace(after: nil)), ([EROFS], .targetReadOnly, .misconfigured),
        ([EACCES, EPERM], .targetDenied, .misconfigured),
        ([ENOLCK, EOPNOTSUPP, ENOSYS, EXDEV], .targetUnable, .misconfigured),
        ([EFBIG], .fileTooLarge, .failUpload),
        ([EBUSY, EAGAIN, ETXTBSY, EEXIST, EINTR], .targetBusy, .retry(after: nil)),
        ([ENOMEM, EMFILE, ENFILE, EPROTO, EINVAL], .targetFailed, hold),
    ]
    static let name: [(errors: [CInt], code: Failure.Code, remedy: Remedy)] = [
        ([ENAMETOOLONG, EINVAL, EILSEQ], .nameRefused, .failUpload),
        ([ELOOP, ENOTDIR, EISDIR], .folderInTheWay, .refused(after: nil)),
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
        for (errors, code, remedy) in Self.target + Self.name where code != .targetBusy && code != .targetFailed {
            for error in errors {
                let verdict = DirectoryVerdict(error, about: remedy == .refused(after: nil) ? .name : .target)
                #expect(!verdict.advice.isEmpty || verdict.code == .targetFailed, "\(error)")
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
        for (_, code, _) in Self.target + Self.name { #expect(text.contains("`\(code.rawValue)`"), "\(code)") }
        for code: Failure.Code in [.notMounted, .noMarker, .targetReplaced, .targetSilent, .readBackDiffers] {
            #expect(text.contains("`\(code.rawValue)`"), "\(code)")
        }
    }
}
