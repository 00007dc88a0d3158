import Foundation

/// Foundation's decoder, so that ours is not checked against itself.
func decodeBase64(_ text: String) -> [UInt8]? { Data(base64Encoded: text).map { Array($0) } }
