internal import Core

/// A POSIX access control list as the attribute `system.posix_acl_access` has it (linux/posix_acl_xattr.h).
enum AccessList {
    /// What the file's own group may, as three bits; 0 where it does not say.
    static func group(in list: [UInt8]) -> UInt32 {
        var rest = list[...]
        // A version of 32 bits, then entries of 8 bytes: kind, rights, and a number; all little-endian.
        guard rest.number(at: 0, as: UInt32.self).map(UInt32.init(littleEndian:)) == 2 else { return 0 }
        rest = rest.dropFirst(4)
        while let kind = rest.number(at: 0, as: UInt16.self), let rights = rest.number(at: 2, as: UInt16.self),
            rest.count >= 8
        {
            if UInt16(littleEndian: kind) == 0x04 { return UInt32(UInt16(littleEndian: rights) & 7) }
            rest = rest.dropFirst(8)
        }
        return 0
    }
}
