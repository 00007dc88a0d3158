internal import Core
internal import Glibc
internal import Linux

/// What the loader asks of the disk, besides reading the configuration itself.
package enum DiskChecks: Sendable {
    case checked
    /// Looks at nothing: folders and secret files need not be there. For tests, and for a configuration that is meant
    /// for another machine.
    case unchecked
}

/// Answers about folders and files that a configuration names. A `nil` answer is a good one.
struct Disk {
    let checks: DiskChecks

    /// The path with symbolic links followed, as far as it exists; the rest as it was written.
    func resolved(_ path: FilePath) -> FilePath {
        guard checks == .checked else { return path.normalised }
        var existing = path.normalised
        var rest: [FilePath] = []
        while !existing.isEmpty, existing != "/" {
            if let real = Files.real(existing) {
                return rest.reversed().reduce(real) { $0.appending($1) }
            }
            rest.append(existing.name)
            existing = existing.parent
        }
        return path.normalised
    }

    /// Why a folder cannot be watched, with the remedy.
    func troubleWatching(_ path: FilePath) -> String? {
        guard checks == .checked else { return nil }
        switch Self.look(path) {
        case .failure(let error) where error.isMissing:
            return "`\(path.display)` is not there; make it (mkdir -p), or mount what belongs there first"
        case .failure(let error): return "`\(path.display)` cannot be looked at: \(error.reason)"
        case .success(let look) where !look.isDirectory: return "`\(path.display)` is no folder"
        case .success: return nil
        }
    }

    /// Why a secret file cannot be read.
    func troubleReading(_ path: FilePath) -> String? {
        guard checks == .checked else { return nil }
        switch Self.look(path) {
        case .failure(let error): return "`\(path.display)` cannot be read: \(error.reason)"
        case .success(let look) where !look.isRegular: return "`\(path.display)` is no file"
        case .success: break
        }
        if let reason = Self.denies(path, R_OK) { return "`\(path.display)` cannot be read: \(reason)" }
        return nil
    }

    func troubleRunning(_ path: FilePath) -> String? {
        guard checks == .checked else { return nil }
        return Self.denies(path, X_OK).map { "`\(path.display)` cannot be run: \($0)" }
    }

    /// The permission bits of a file, when they let somebody besides its owner read it.
    func openMode(_ path: FilePath, to readers: Readers) -> String? {
        guard checks == .checked, case .success(let look) = Self.look(path), look.mode & readers.rawValue != 0 else {
            return nil
        }
        return "0" + String(look.mode & 0o777, radix: 8)
    }

    enum Readers: UInt32 {
        case others = 0o004
        case groupOrOthers = 0o044
    }

    private static func look(_ path: FilePath) -> Result<FileLook, SystemError> {
        // `FileLook` does not follow a last link, and settings may well be links (containers mount them so).
        do throws(SystemError) { return .success(try FileLook(at: Files.real(path) ?? path)) } catch {
            return .failure(error)
        }
    }

    private static func denies(_ path: FilePath, _ mode: CInt) -> String? {
        do throws(SystemError) {
            try systemCall("access", on: path.display) { path.withCString { access($0, mode) } }
            return nil
        } catch { return error.reason }
    }
}
