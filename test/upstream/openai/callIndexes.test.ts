/** Which call a piece belongs to, where servers number and name calls as they should not. */
import { assert, describe, it } from "@effect/vitest"
import { callIndexes, type CallPiece } from "../../../src/contracts/chat/callIndexes.ts"

interface Call {
  readonly name: string | undefined
  readonly arguments: string
}

type Place = Partial<Pick<CallPiece, "id" | "index">>

const named = (name: string | undefined, argumentsDelta: string, place: Place = {}): CallPiece => ({
  index: place.index,
  id: place.id,
  name,
  argumentsDelta
})
const piece = (argumentsDelta: string, place: Place = {}): CallPiece => named(undefined, argumentsDelta, place)

/** The calls that these lists of pieces are. */
const callsOf = (lists: ReadonlyArray<ReadonlyArray<CallPiece>>): ReadonlyArray<Call> => {
  const indexOf = callIndexes()
  const calls: Array<Call> = []
  for (const [list, pieces] of lists.entries()) {
    for (const piece of pieces) {
      const index = indexOf(piece, list)
      const { arguments: args, name } = calls[index] ?? { name: undefined, arguments: "" }
      calls[index] = { name: name ?? piece.name, arguments: args + piece.argumentsDelta }
    }
  }
  return calls
}
/** The calls of pieces that come one by one. */
const calls = (...pieces: ReadonlyArray<CallPiece>) => callsOf(pieces.map((piece) => [piece]))

const made = (...calls: ReadonlyArray<readonly [name: string | undefined, args: string]>) =>
  calls.map(([name, args]) => ({ name, arguments: args }))

const zero = { index: 0 }

describe("calls", () => {
  it("are others under one index where the first is whole, or has another name", () => {
    const rome = "{\"city\":\"Rome\"}"
    assert.deepStrictEqual(calls(named("f", "{}", zero), named("f", rome, zero)), made(["f", "{}"], ["f", rome]))
    assert.deepStrictEqual(
      calls(named("f", "", zero), named("g", "{", zero), piece("}", zero)),
      made(["f", ""], ["g", "{}"])
    )
    assert.deepStrictEqual(
      calls(named("f", "{\"a\":\"}\"", zero), named("f", "}", zero), named("f", "", zero), piece(" ", zero)),
      made(["f", "{\"a\":\"}\"} "])
    )
  })

  it("are as many as names in one list, unless one goes on in it", () => {
    const list = (...pieces: ReadonlyArray<CallPiece>) => callsOf([pieces])
    assert.deepStrictEqual(list(named("f", "", zero), named("f", "", zero)), made(["f", ""], ["f", ""]))
    assert.deepStrictEqual(list(named("f", "{}"), named("f", "")), made(["f", "{}"], ["f", ""]))
    assert.deepStrictEqual(list(named("f", "{", zero), named("f", "}", zero)), made(["f", "{}"]))
    const same = { ...zero, id: "a" }
    assert.deepStrictEqual(list(named("f", "", same), named("f", "{}", same)), made(["f", "{}"]))
    assert.deepStrictEqual(list(named("f", "{}", same), named("f", "{}", same)), made(["f", "{}"], ["f", "{}"]))
  })

  it("go on by their ids where they have one index", () => {
    assert.deepStrictEqual(
      calls(
        named("f", "", { ...zero, id: "a" }),
        named("g", "", { ...zero, id: "b" }),
        piece("{}", { ...zero, id: "a" }),
        piece("{\"b\":1}", { ...zero, id: "b" })
      ),
      made(["f", "{}"], ["g", "{\"b\":1}"])
    )
  })

  it("go on by their indexes where they have one id", () => {
    assert.deepStrictEqual(
      calls(
        named("f", "", { index: 0, id: "a" }),
        named("g", "", { index: 1, id: "a" }),
        piece("{}", { index: 0, id: "a" }),
        piece("{\"b\":1}", { index: 1, id: "a" })
      ),
      made(["f", "{}"], ["g", "{\"b\":1}"])
    )
  })

  it("have what comes under unknown ids, as far as they are not whole", () => {
    assert.deepStrictEqual(
      calls(named("f", "", { id: "a" }), piece("{", { id: "x" }), piece("}", { id: "y" }), piece("", { id: "z" })),
      made(["f", "{}"])
    )
    assert.deepStrictEqual(
      calls(named("f", "{}", { id: "a" }), piece("{\"b\":1}", { id: "b" })),
      made(["f", "{}"], [undefined, "{\"b\":1}"])
    )
  })
})
