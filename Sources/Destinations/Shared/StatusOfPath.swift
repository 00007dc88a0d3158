/// Statuses that say nothing of a file: what is in between answers with them, or the account behind the service.
///
/// 402 (RFC 9110, section 15.5.3) is about an account; 406 and 418 are the words of firewalls for web applications; 451 (RFC 7725) is about
/// a place or a law; 499 is what nginx notes of a client that went.
enum StatusOfPath {
    static let all: Set<Int> = [402, 406, 418, 451, 499]
}
