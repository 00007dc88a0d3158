internal import Core

/// A POSIX access control list in the form of the attribute `system.posix_acl_access` (linux/posix_acl_xattr.h).
enum AccessList {
    enum Kind: UInt16 {
        case owner = 0x01
        case user = 0x02
        case owningGroup = 0x04
        case group = 0x08
        case mask = 0x10
        case other = 0x20
    }

    struct Entry {
        let kind: Kind
        /// Three bits; the mask limits them.
        let rights: UInt32
        /// The number of the named user or group.
        let number: UInt32

        var mayWrite: Bool { rights & 2 != 0 }
    }

    static func entries(in list: [UInt8]) -> [Entry] {
        var rest = list[...]
        // A version of 32 bits, then entries of 8 bytes: kind, rights, and a number; all little-endian.
        guard rest.number(at: 0, as: UInt32.self).map(UInt32.init(littleEndian:)) == 2 else { return [] }
        rest = rest.dropFirst(4)
        var entries: [Entry] = []
        while let kind = rest.number(at: 0, as: UInt16.self), let rights = rest.number(at: 2, as: UInt16.self),
            let number = rest.number(at: 4, as: UInt32.self)
        {
            if let kind = Kind(rawValue: UInt16(littleEndian: kind)) {
                entries.append(
                    Entry(
                        kind: kind, rights: UInt32(UInt16(littleEndian: rights) & 7),
                        number: UInt32(littleEndian: number)
                    ))
            }
            rest = rest.dropFirst(8)
        }
        return entries
    }

    /// The rights of the file's own group, as three bits; 0 where it has no entry.
    static func group(in list: [UInt8]) -> UInt32 {
        entries(in: list).first { $0.kind == .owningGroup }?.rights ?? 0
    }
}
