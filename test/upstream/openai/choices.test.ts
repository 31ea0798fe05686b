/** A stream of several choices means the same as a stream of each choice alone, however their chunks interleave. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assembleReply, Turn } from "../../../src/completion/assembleReply.ts"
import { ChoiceTurns } from "../../../src/completion/choices.ts"
import { chunkDecoder, recordedForm } from "../../../src/contracts/chat/readReply.ts"
import { chatFrames } from "../../../src/contracts/chat/writeReply.ts"
import { plainConversation } from "../../../src/domain/Conversation.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { RequestBudget } from "../../../src/upstream/budget.ts"

const delta = fc.oneof(
  { weight: 4, arbitrary: fc.record({ content: fc.string({ maxLength: 4 }) }) },
  fc.record({ reasoning_content: fc.string({ maxLength: 4 }) }),
  fc.record({ content: fc.constantFrom("<think>", "</think>", "\ud83d") }),
  fc.record({
    index: fc.nat(1),
    id: fc.constantFrom("a", "b", undefined),
    args: fc.constantFrom("{", "\"x\":1", "}", "")
  }).map(({ args, id, index }) => ({
    tool_calls: [{ index, ...(id === undefined ? {} : { id }), function: { name: id, arguments: args } }]
  })),
  fc.record({ refusal: fc.constant("no") })
)

const reason = fc.constantFrom("stop", "length", "tool_calls", "content_filter")

/** One choice: its deltas and its end. */
const choices = fc.array(fc.tuple(fc.array(delta, { maxLength: 6 }), reason), { minLength: 2, maxLength: 4 })

const chunk = (index: number, delta: object, finish_reason: string | null) =>
  JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index, delta, finish_reason }] })

const usage = JSON.stringify({
  choices: [],
  usage: {
    prompt_tokens: 3,
    completion_tokens: 9,
    total_tokens: 12,
    completion_tokens_details: { reasoning_tokens: 2 }
  }
})

const read = (count: number, texts: ReadonlyArray<string>) => {
  const decoder = chunkDecoder({ ...recordedForm(), choices: count })
  const out: Array<UpstreamEvent> = []
  for (const data of [...texts, usage, "[DONE]"]) decoder.push({ event: undefined, data }, out)
  decoder.end(out)
  assert.isUndefined(decoder.failure())
  return out
}

/** What is said of all choices together. */
const isOfReply = (event: UpstreamEvent): boolean =>
  event._tag === "UpstreamUsage" || (event._tag === "UpstreamExtra" && event.at === "usage")

/** The events of each choice. */
const byChoice = (events: ReadonlyArray<UpstreamEvent>, count: number) => {
  const found = Array.from({ length: count }, (): Array<UpstreamEvent> => [])
  let current = 0
  for (const event of events) {
    if (event._tag === "UpstreamChoice") current = event.index
    else if (!isOfReply(event)) found[current]!.push(event)
  }
  return found
}

const chunksOf = (index: number, [deltas, end]: readonly [ReadonlyArray<object>, string]) => [
  ...deltas.map((each) => chunk(index, each, null)),
  chunk(index, {}, end)
]

/** Takes the first of the lists that are left, by the numbers. */
const interleaved = (lists: ReadonlyArray<ReadonlyArray<string>>, order: ReadonlyArray<number>) => {
  const left = lists.map((list) => [...list])
  const out: Array<string> = []
  for (let i = 0; left.some((list) => list.length > 0); i++) {
    const open = left.filter((list) => list.length > 0)
    out.push(open[(order[i] ?? 0) % open.length]!.shift()!)
  }
  return out
}

const order = fc.array(fc.nat(3), { minLength: 30, maxLength: 30 })

const budget = () => new RequestBudget(defaultLimits, { monotonicTimeNanosUnsafe: () => 0n })

const turn = () =>
  new Turn(
    assembleReply({
      sieve: undefined,
      reasoningCalls: undefined,
      stripMarkers: false,
      stop: undefined,
      singleCall: false,
      showReasoning: true,
      addCall: () => true,
      callId: (index) => `call_${index}`,
      keepSealed: undefined,
      keepSeal: undefined,
      promptTokens: () => 0,
      meter: undefined
    }),
    undefined,
    budget(),
    { style: "chat", most: undefined, names: undefined, heldBeside: undefined, onUnknownEnd: undefined }
  )

/** The choices that a client reads of the frames of a turn, without their index. */
const shown = (machine: Turn | ChoiceTurns, events: ReadonlyArray<UpstreamEvent>, count: number) => {
  const replied: Array<ReplyEvent> = []
  for (const event of events) machine.push(event, replied)
  machine.end(replied)
  const out: Array<string> = []
  const { frames } = chatFrames({ id: "c", created: 1, model: "m" }, true)
  for (const event of replied) frames.push(event, out)
  const found = Array.from({ length: count }, (): Array<unknown> => [])
  const usages: Array<unknown> = []
  for (const frame of out) {
    const text = frame.slice("data: ".length)
    if (text.startsWith("[DONE]")) continue
    const { choices: [choice], usage } = JSON.parse(text) as {
      choices: ReadonlyArray<{ index: number }>
      usage: unknown
    }
    if (choice === undefined) usages.push(usage)
    else found[choice.index]!.push({ ...choice, index: 0 })
  }
  return { found, usages }
}

describe("choices of one reply", () => {
  it("are read as each would be alone", () => {
    fc.assert(fc.property(choices, order, (made, order) => {
      const mixed = read(made.length, interleaved(made.map((each, index) => chunksOf(index, each)), order))
      const alone = made.map((each) => read(1, chunksOf(0, each)).filter((event) => !isOfReply(event)))
      assert.deepStrictEqual(byChoice(mixed, made.length), alone)
    }))
  })

  it("are written as each would be alone, with the usage once", () => {
    fc.assert(fc.property(choices, order, (made, order) => {
      const mixed = read(made.length, interleaved(made.map((each, index) => chunksOf(index, each)), order))
      const several = new ChoiceTurns({ ...plainConversation, choices: made.length }, undefined, turn)
      const { found, usages } = shown(several, mixed, made.length)
      const alone = made.map((each) => shown(turn(), read(1, chunksOf(0, each)), 1))
      assert.deepStrictEqual(found, alone.map((each) => each.found[0]!))
      assert.deepStrictEqual(usages, alone[0]!.usages)
      assert.isTrue(several.isDone)
    }))
  })
})
