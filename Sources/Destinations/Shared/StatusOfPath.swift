/// Statuses that say nothing of a file: what is in between answers with them, the service for itself, or the account behind it.
///
/// 402 (RFC 9110, section 15.5.3) is about an account; 406 and 418 are the words of firewalls for web applications; 417 (15.5.18) is about
/// `Expect`, which is left out from then on; 426 (15.5.22) and 428 (RFC 6585) are about the protocol; 451 (RFC 7725) is about a place or a
/// law; 499 is what nginx notes of a client that went.
enum StatusOfPath {
    static let all: Set<Int> = [402, 406, 417, 418, 426, 428, 451, 499]
}
