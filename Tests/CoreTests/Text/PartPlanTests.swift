import Core
import TestKit
import Testing

@Suite("Plans of parts")
struct PartPlanTests {
    private static let block: Int64 = 1000

    static let counts: [(size: Int64, short: Int, merge: Int)] = [
        (0, 1, 1), (1, 1, 1), (block - 1, 1, 1), (block, 1, 1), (block + 1, 2, 1), (block * 3 / 2, 2, 1),
        (2 * block - 1, 2, 1), (2 * block, 2, 2), (2 * block + 1, 3, 2), (block * 5 / 2, 3, 2),
    ]

    @Test("the number of parts follows the rule", arguments: counts)
    func counting(_ row: (size: Int64, short: Int, merge: Int)) throws {
        let short = try #require(PartPlan(size: row.size, partSize: Self.block, rule: .short))
        let merge = try #require(PartPlan(size: row.size, partSize: Self.block, rule: .merge))
        #expect(short.count == row.short)
        #expect(merge.count == row.merge)
    }

    @Test("the parts cover the file once, in order, for any size and rule", arguments: PartPlan.Rule.allCases)
    func covers(_ rule: PartPlan.Rule) throws {
        var dice = Dice(seed: 7)
        for _ in 0..<2000 {
            let partSize = Int64.random(in: 1...3000, using: &dice)
            let size = Int64.random(in: 0...20_000, using: &dice)
            let plan = try #require(PartPlan(size: size, partSize: partSize, rule: rule))
            var next: Int64 = 0
            for index in 0..<plan.count {
                let part = plan[index]
                let words: Comment = "\(size) by \(partSize), \(rule): \(part)"
                #expect(part.index == index && part.offset == next, words)
                #expect(part.isLast == (index == plan.count - 1), words)
                if part.isLast {
                    #expect(part.length > 0 || size == 0, words)
                    #expect(part.length <= (rule == .short ? partSize : max(partSize, 2 * partSize - 1)), words)
                } else {
                    #expect(part.length == partSize, words)
                }
                next = part.end
            }
            #expect(next == size, "\(size) by \(partSize), \(rule)")
        }
    }

    @Test("the last part of a merged plan takes the rest")
    func merged() throws {
        let plan = try #require(PartPlan(size: 2500, partSize: Self.block, rule: .merge))
        #expect(plan[0].range == 0..<1000)
        #expect(plan[1].range == 1000..<2500)
        let one = try #require(PartPlan(size: 1500, partSize: Self.block, rule: .merge))
        #expect(one[0].range == 0..<1500)
    }

    @Test("impossible sizes have no plan")
    func refuses() {
        #expect(PartPlan(size: -1, partSize: 1) == nil)
        #expect(PartPlan(size: 1, partSize: 0) == nil)
        #expect(PartPlan(size: .max, partSize: 1 << 40)?.count == 1 << 23)
    }
}
