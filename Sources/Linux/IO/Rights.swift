package import Core
internal import Glibc

extension Files {
    /// Why this process may not create and remove files in a folder, by its effective rights; `nil` when it may
    /// (faccessat(2), `AT_EACCESS`).
    package static func refusal(toWriteIn folder: FilePath) -> SystemError? {
        do {
            try systemCall("access", on: folder.display) {
                folder.withCString { faccessat(AT_FDCWD, $0, W_OK | X_OK, CInt(AT_EACCESS)) }
            }
            return nil
        } catch { return error }
    }
}

/// A right to a folder that this process's user lacks: where it lacks, and the command that gives it.
package struct MissingRight: Hashable, Sendable {
    package enum Wanted: Hashable, Sendable { case read, write }

    /// The first folder on the way, or the folder itself.
    package let place: FilePath
    /// `nil` where the folder on the way may not be entered.
    private let wanted: Wanted?
    private let user: String
    /// The group of this process.
    private let group: String
    private let owner: UInt32
    /// A group with the right that the user is not in.
    private let groupToJoin: String?

    /// - Returns: `nil` where nothing lacks, where that cannot be found out, and for root, which lacks a right only
    ///   where a server refuses it.
    package init?(_ wanted: Wanted, at path: FilePath) {
        guard UserDatabase.user != 0, path.isAbsolute else { return nil }
        user = UserDatabase.shown(UserDatabase.user)
        group = UserDatabase.shown(group: UserDatabase.group)
        var parents: [FilePath] = []
        var next = path.normalised
        while next != "/", next.parent != next {
            next = next.parent
            parents.append(next)
        }
        if let closed = parents.last(where: { !Self.allows(X_OK, at: $0) }) {
            (place, self.wanted) = (closed, nil)
        } else {
            guard !Self.allows(X_OK | (wanted == .write ? W_OK : R_OK), at: path) else { return nil }
            (place, self.wanted) = (path.normalised, wanted)
        }
        var status = stat()
        guard place.withCString({ stat($0, &status) }) == 0 else { return nil }
        owner = status.st_uid
        let bits: mode_t =
            switch self.wanted {
            case nil: 0o010
            case .read: 0o050
            case .write: 0o030
            }
        let isOther = status.st_gid != 0 && !UserDatabase.groups.contains(status.st_gid)
        groupToJoin = isOther && status.st_mode & bits == bits ? UserDatabase.shown(group: status.st_gid) : nil
    }

    private static func allows(_ rights: CInt, at path: FilePath) -> Bool {
        path.withCString { faccessat(AT_FDCWD, $0, rights, CInt(AT_EACCESS)) } == 0 || errno != EACCES
    }

    private var right: String {
        switch wanted {
        case nil: "enter"
        case .read: "read"
        case .write: "write to"
        }
    }

    /// ``the user `sluice` may not enter /home/anna``.
    package var text: String { "the user `\(printable(user))` may not \(right) \(place.display)" }

    /// The command that changes it, for root.
    package var remedy: String {
        let path = Self.word(place)
        if let groupToJoin {
            return
                "`sudo usermod -aG \(groupToJoin) \(user)` gives it that right, by the group of the folder, from its "
                + "next start"
        }
        // Not the whole of a folder in which other programs have theirs.
        if wanted == .write, place.parent == "/" {
            let own = Self.word(place.appending("sluice"))
            return "use a folder of its own: `sudo install -d -o \(user) -g \(group) \(own)`"
        }
        switch (wanted, owner == 0) {
        case (nil, true): return "`sudo chmod o+x \(path)` gives it that right"
        case (nil, false): return "`sudo setfacl -m u:\(user):x \(path)` gives it that right"
        case (let wanted, true):
            let rights = wanted == .write ? "rwX" : "rX"
            return "`sudo chgrp -R \(group) \(path) && sudo chmod -R g+\(rights) \(path)` gives it that right"
        case (let wanted, false):
            let rights = wanted == .write ? "rwX" : "rX"
            return
                "`sudo setfacl -R -m u:\(user):\(rights) -m d:u:\(user):\(rights) \(path)` gives it that right, also "
                + "to what is made there later"
        }
    }

    /// The command that makes a folder for the user of this process, for root.
    package static func commandToMake(_ path: FilePath) -> String {
        let (user, group) = (UserDatabase.shown(UserDatabase.user), UserDatabase.shown(group: UserDatabase.group))
        return "`sudo install -d -o \(user) -g \(group) \(word(path))`"
    }

    /// One word for a shell.
    private static func word(_ path: FilePath) -> String {
        let text = path.display
        let isPlain = text.utf8.allSatisfy { $0.isLetterOrDigit(or: "/._-+@:,%") }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
