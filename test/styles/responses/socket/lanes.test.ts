/** The machine of lanes against a plain model, over generated interleavings. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Lanes, mostActive, mostLanes, mostWaiting } from "../../../../src/styles/responses/socket/lanes.ts"
import { runs, seed } from "../../../support/effort.ts"

interface Turn {
  readonly lane: string | undefined
  readonly number: number
}

interface Response {
  readonly id: string
  readonly size: number
}

/** All that was accepted, in order, with its state: nothing is kept besides. */
class PlainModel {
  readonly turns: Array<{ readonly turn: Turn; state: "waits" | "runs" | "over" }> = []
  readonly kept: Array<{ readonly lane: string | undefined; readonly response: Response; readonly isWarmUp: boolean }> =
    []

  turnsThat(state: "waits" | "runs"): ReadonlyArray<Turn> {
    return this.turns.filter((each) => each.state === state).map(({ turn }) => turn)
  }

  /** Starts the first turn that may run; `undefined` if all have to wait. */
  start(): Turn | undefined {
    const running = this.turnsThat("runs")
    const next = this.turns.find(({ state, turn }) =>
      state === "waits" && running.length < mostActive && running.every(({ lane }) => lane !== turn.lane)
    )
    if (next !== undefined) next.state = "runs"
    return next?.turn
  }

  offer(turn: Turn): string {
    const named = new Set(this.turns.flatMap(({ turn: { lane } }) => lane ?? []))
    if (turn.lane !== undefined && !named.has(turn.lane) && named.size === mostLanes) return "too many lanes"
    this.turns.push({ turn, state: "waits" })
    if (this.start() !== undefined) return "runs"
    if (this.turnsThat("waits").length <= mostWaiting) return "waits"
    this.turns.pop()
    return "too many waiting"
  }

  end(turn: Turn): Turn | undefined {
    this.turns.find((each) => each.turn === turn)!.state = "over"
    return this.start()
  }

  /** What each lane holds: its last response, and its last warm-up. */
  get held(): ReadonlySet<Response> {
    const held = new Map<string, Response>()
    for (const { isWarmUp, lane, response } of this.kept) {
      held.set(`${lane} latest`, response)
      if (isWarmUp) held.set(`${lane} warm-up`, response)
    }
    return new Set(held.values())
  }
}

const lane = fc.option(fc.integer({ min: 0, max: 40 }).map((n) => `lane-${n}`), { nil: undefined })

const op = fc.oneof(
  { weight: 5, arbitrary: fc.record({ _tag: fc.constant("Offer" as const), lane }) },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("End" as const),
      nth: fc.nat(mostActive),
      result: fc.constantFrom("response" as const, "warm-up" as const, "failure" as const),
      size: fc.nat(1000)
    })
  },
  { weight: 1, arbitrary: fc.constant({ _tag: "Drop" as const }) }
)

/** Few lanes make turns wait for each other, many make them wait for a place. */
const operations = fc.oneof(
  fc.array(op, { minLength: 1, maxLength: 300 }),
  fc.array(op.map((each) => each._tag === "Offer" ? { ...each, lane: each.lane?.slice(0, 6) } : each), {
    minLength: 80,
    maxLength: 300
  })
)

describe("lanes", () => {
  it("run, wait, refuse and keep as a plain model does, in every interleaving", () => {
    fc.assert(
      fc.property(operations, (operations) => {
        const lanes = new Lanes<Turn, Response>()
        const model = new PlainModel()
        let count = 0
        for (const each of operations) {
          const running = model.turnsThat("runs")
          if (each._tag === "Offer") {
            const turn = { lane: each.lane, number: count++ }
            assert.strictEqual(lanes.offer(turn), model.offer(turn))
          } else if (each._tag === "Drop") {
            const waiting = model.turnsThat("waits")
            assert.deepStrictEqual(lanes.dropWaiting(), waiting)
            for (const one of model.turns) if (one.state === "waits") one.state = "over"
          } else if (running.length > 0) {
            const turn = running[each.nth % running.length]!
            if (each.result !== "failure") {
              const response = { id: `resp-${turn.number}`, size: each.size }
              const isWarmUp = each.result === "warm-up"
              lanes.keep(turn, response, isWarmUp)
              model.kept.push({ lane: turn.lane, response, isWarmUp })
            }
            assert.strictEqual(lanes.end(turn), model.end(turn))
          }
          assert.strictEqual(lanes.isIdle, model.turnsThat("runs").length === 0)
          const { held } = model
          assert.strictEqual(lanes.size, [...held].reduce((sum, { size }) => sum + size, 0))
          for (const { response } of model.kept) {
            assert.strictEqual(lanes.find(response.id), held.has(response) ? response : undefined)
          }
        }
      }),
      { numRuns: runs(300), seed }
    )
  })

  it("lets sixteen turns run, sixty-four wait and thirty-two lanes have a name, and refuses one more of each", () => {
    const lanes = new Lanes<Turn, Response>()
    const turn = (lane: number | undefined): Turn => ({ lane: lane === undefined ? lane : `lane-${lane}`, number: 0 })
    const first = Array.from({ length: mostLanes }, (_, i) => lanes.offer(turn(i)))
    assert.deepStrictEqual(first, [...Array(mostActive).fill("runs"), ...Array(mostLanes - mostActive).fill("waits")])
    assert.strictEqual(lanes.offer(turn(mostLanes)), "too many lanes")
    const more = Array.from({ length: mostWaiting - mostLanes + mostActive }, () => lanes.offer(turn(undefined)))
    assert.deepStrictEqual([...new Set(more)], ["waits"])
    assert.strictEqual(lanes.offer(turn(0)), "too many waiting")
  })
})
