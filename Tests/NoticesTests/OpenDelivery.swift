import Core
import TestKit

@testable import Notices

extension HookDelivery {
    /// With ``OpenPermit``.
    init(_ target: Hook.Target) {
        switch target {
        case .command(let command): self = .command(command.words)
        case .web(let web): self = .web(web, OpenPermit())
        }
    }
}
