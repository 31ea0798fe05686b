/**
 * Generates session replies: rounds of events in all the ways in which the protocol lets a server write them.
 */
import * as fc from "fast-check"
import { type Interpreted, makeInterpreter, type Patch } from "./wholeDocument.ts"

type Restart = "full" | "empty" | "none"

interface Step {
  readonly channel: "THINK" | "RESPONSE" | "TIP"
  readonly text: string
  /** A new fragment even where the one before is of the same type. */
  readonly anew: boolean
  readonly how: "last" | "index" | "set" | "batch" | "batchBelow" | "batchTwo"
  /** Which of the sticky parts to leave out where that is allowed. */
  readonly omitPath: boolean
  readonly omitOperation: boolean
  readonly noise: "none" | "elapsed" | "total" | "exact" | "unknown" | "quasi"
  readonly cut: { readonly restart: Restart; readonly status: "INCOMPLETE" | "AUTO_CONTINUE" | undefined } | undefined
}

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 6 }),
  fc.constantFrom("a", "word ", "\"q\"", "\\", "é", "🌍", "\n", "日本", "{\"v\":\"x\"}", "", "\ud83d", "\ude00")
)

const step: fc.Arbitrary<Step> = fc.record({
  channel: fc.constantFrom("THINK" as const, "RESPONSE" as const, "RESPONSE" as const, "TIP" as const),
  text,
  anew: fc.boolean(),
  how: fc.constantFrom(
    "last" as const,
    "last" as const,
    "last" as const,
    "index" as const,
    "set" as const,
    "batch" as const,
    "batchBelow" as const,
    "batchTwo" as const
  ),
  omitPath: fc.boolean(),
  omitOperation: fc.boolean(),
  noise: fc.constantFrom(
    "none" as const,
    "none" as const,
    "elapsed" as const,
    "total" as const,
    "exact" as const,
    "unknown" as const,
    "quasi" as const
  ),
  cut: fc.option(
    fc.record({
      restart: fc.constantFrom<Restart>("full", "empty", "none"),
      status: fc.constantFrom("INCOMPLETE" as const, "AUTO_CONTINUE" as const, undefined)
    }),
    { nil: undefined, freq: 5 }
  )
})

export interface GeneratedReply {
  /** Patches of each round. */
  readonly rounds: ReadonlyArray<ReadonlyArray<Patch>>
  /** What the interpreter makes of each round's end. */
  readonly ends: ReadonlyArray<Interpreted>
}

const build = (shape: "new" | "old", steps: ReadonlyArray<Step>): GeneratedReply => {
  const interpreter = makeInterpreter()
  const rounds: Array<Array<Patch>> = [[]]
  const ends: Array<Interpreted> = []
  let path: string | undefined
  let operation = "SET"
  let tokens = 0

  const send = (patch: Patch) => {
    rounds.at(-1)!.push(patch)
    interpreter.apply(structuredClone(patch))
  }
  const snapshot = (response: { [key: string]: unknown }) => {
    send({ v: { response } } as unknown as Patch)
    path = undefined
    operation = "SET"
  }
  const patch = (p: string, o: string, v: unknown, step: Step) => {
    const older = shape === "old" && (p === "response/content" || p === "response/thinking_content")
    const listBelowResponse = p === "response" && Array.isArray(v)
    const implied = older ? "APPEND" : listBelowResponse ? "BATCH" : operation
    const omitOperation = step.omitOperation && implied === o
    const value = {
      ...(step.omitPath && path === p ? {} : { p }),
      ...(omitOperation ? {} : { o }),
      v
    }
    path = p
    if (!omitOperation) operation = o
    send(value as unknown as Patch)
  }
  const response = () => (interpreter.document as { response: { [key: string]: unknown } }).response
  const fragments = () => (response()["fragments"] ?? []) as Array<{ type: string; content: string }>

  const grow = (step: Step) => {
    if (shape === "old") {
      if (step.channel === "TIP") return
      const key = step.channel === "THINK" ? "thinking_content" : "content"
      const whole = String(response()[key] ?? "") + step.text
      switch (step.how) {
        case "set":
          return patch(`response/${key}`, "SET", whole, step)
        case "batch":
          return patch("response", "BATCH", [{ p: `response/${key}`, v: step.text }], step)
        case "batchBelow":
          return patch("response", "BATCH", [{ p: key, o: "APPEND", v: step.text }], step)
        case "batchTwo":
          return patch("response", "BATCH", [{ p: key, v: step.text }, { v: step.text }, {
            p: "quasi_status",
            o: "SET",
            v: "WIP"
          }], step)
        default:
          return patch(`response/${key}`, "APPEND", step.text, step)
      }
    }
    const last = fragments().at(-1)
    if (last === undefined || last.type !== step.channel || step.anew) {
      const id = fragments().length + 1
      return patch("response/fragments", "APPEND", [{ id, type: step.channel, content: step.text }], step)
    }
    switch (step.how) {
      case "last":
        return patch("response/fragments/-1/content", "APPEND", step.text, step)
      case "index":
        return patch(`response/fragments/${fragments().length - 1}/content`, "APPEND", step.text, step)
      case "set":
        return patch("response/fragments/-1/content", "SET", last.content + step.text, step)
      case "batch":
        return patch("response", "BATCH", [
          { p: "fragments/-1/content", o: "APPEND", v: step.text },
          { p: "quasi_status", o: "SET", v: "FINISHED" }
        ], step)
      case "batchBelow":
        return patch("response/fragments/-1", "BATCH", [
          { p: "elapsed_secs", v: 0.5 },
          { p: "content", o: "APPEND", v: step.text },
          { v: "!" }
        ], step)
      case "batchTwo":
        return patch("response", "BATCH", [
          { p: "fragments", o: "APPEND", v: [{ id: 9, type: step.channel, content: step.text }] },
          { p: "fragments/-1/content", v: "+" }
        ], step)
    }
  }

  const noise = (step: Step) => {
    switch (step.noise) {
      case "none":
        return
      case "elapsed":
        return shape === "new" && fragments().length > 0
          ? patch("response/fragments/-1/elapsed_secs", "SET", 1.5, step)
          : undefined
      case "total":
        return patch("response/accumulated_token_usage", "SET", ++tokens, step)
      case "exact":
        return patch("response/token_usage", "SET", { prompt_tokens: 3, completion_tokens: ++tokens }, step)
      case "unknown":
        return patch("response/nobody/knows", "SET", "this", step)
      case "quasi":
        return patch("response/quasi_status", "SET", "FINISHED", step)
    }
  }

  const opening = () =>
    shape === "new" ? { message_id: 2, status: "WIP", accumulated_token_usage: 0, fragments: [] } : {
      message_id: 2,
      status: "WIP",
      accumulated_token_usage: 0,
      thinking_content: "",
      content: ""
    }

  const restart = (kind: Restart) => {
    rounds.push([])
    interpreter.startRound()
    if (kind === "empty") snapshot(opening())
    else if (kind === "full") {
      snapshot({ ...structuredClone(response()), status: "WIP" })
    } else {
      // A stream without a snapshot leaves nothing out at first.
      path = undefined
      operation = ""
    }
  }

  snapshot(opening())
  // An empty restart's own text is gone from the document, so that later full snapshots would no longer hold the reply.
  let partial = false
  for (const step of steps) {
    grow(step)
    noise(step)
    if (step.cut === undefined) continue
    if (step.cut.status !== undefined) patch("response/status", "SET", step.cut.status, step)
    ends.push(interpreter.result)
    const kind: Restart = partial && step.cut.restart === "full" ? "none" : step.cut.restart
    partial ||= kind === "empty"
    restart(kind)
  }
  patch("response/status", "SET", "FINISHED", { ...steps[0]!, omitPath: false })
  ends.push(interpreter.result)
  return { rounds, ends }
}

/** Replies of one shape, over one round or more. */
export const generatedReply: fc.Arbitrary<GeneratedReply> = fc.tuple(
  fc.constantFrom("new" as const, "old" as const),
  fc.array(step, { minLength: 1, maxLength: 12 })
).map(([shape, steps]) => build(shape, steps))
