import Foundation

/// Foundation's, so that ours is not checked by itself.
func decodeBase64(_ text: String) -> [UInt8]? { Data(base64Encoded: text).map { Array($0) } }
