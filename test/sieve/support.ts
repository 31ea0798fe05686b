/** Support for the sieve's tests: the declared tools, runs over any cut of a text, and the protocol that every run must follow. */
import { readFileSync } from "node:fs"
import type { ToolDeclaration } from "../../src/domain/Conversation.ts"
import type { Json } from "../../src/domain/json.ts"
import type { SieveEvent } from "../../src/domain/ReplyEvent.ts"
import { run } from "../../src/domain/stream/transducer.ts"
import { sieve } from "../../src/sieve/sieve.ts"

export interface ExpectedCall {
  readonly name: string
  readonly arguments: Json
}

export interface Case {
  readonly name: string
  readonly text: string
  readonly expect: {
    readonly text: string
    readonly calls: ReadonlyArray<ExpectedCall>
    /** Calls that were cut off, with their arguments so far if the case states them. */
    readonly cutOff?: ReadonlyArray<{ readonly name: string; readonly arguments?: string }>
  }
}

const fixture = (name: string): string =>
  readFileSync(new URL(`../fixtures/sieve/${name}.json`, import.meta.url), "utf8")

/** The cases of a file; fails for an empty file. */
export const readCases = (name: string): ReadonlyArray<Case> => {
  const cases: ReadonlyArray<Case> = JSON.parse(fixture(name))
  if (cases.length === 0) throw new Error(`${name} has no cases`)
  return cases
}

export const tools: ReadonlyArray<ToolDeclaration> = (JSON.parse(fixture("tools")) as ReadonlyArray<ToolDeclaration>)
  .map(({ description, name, parameters }) => ({ name, description, parameters, strict: undefined }))

export const callId = (index: number): string => `call_${index}`

export const feed = (chunks: Iterable<string>, declared = tools): Array<SieveEvent> =>
  run(sieve({ tools: declared, callId }), chunks)

/** A part of a reply, independent of the cuts: text or a call. */
export type Item = string | { readonly name: string; readonly arguments: string; readonly isFinished: boolean }

/**
 * The reply that the events make. Throws when they violate the protocol: a call starts once, in order, with its own id; its deltas make up
 * its arguments; other events do not come between; no event is empty; finished arguments are a JSON object.
 */
export const replyOf = (events: ReadonlyArray<SieveEvent>): Array<Item> => {
  const items: Array<Item> = []
  let open: { readonly index: number; readonly name: string; deltas: string } | undefined
  let calls = 0
  const check = (holds: boolean, what: string, event: SieveEvent): void => {
    if (!holds) throw new Error(`${what}: ${JSON.stringify(event)}`)
  }
  for (const event of events) {
    switch (event._tag) {
      case "TextDelta": {
        check(open === undefined, "text inside a call", event)
        check(event.text !== "", "an empty text", event)
        const last = items[items.length - 1]
        if (typeof last === "string") items[items.length - 1] = last + event.text
        else items.push(event.text)
        break
      }
      case "CallStarted":
        check(open === undefined, "a call inside a call", event)
        check(event.index === calls && event.id === callId(calls), "a call out of order", event)
        calls++
        open = { index: event.index, name: event.name, deltas: "" }
        break
      case "CallArguments":
        check(open?.index === event.index && event.delta !== "", "arguments of no call", event)
        if (open !== undefined) open.deltas += event.delta
        break
      default: {
        check(open?.index === event.index && open.name === event.name, "the end of no call", event)
        check(event.id === callId(event.index) && open?.deltas === event.arguments, "an end that does not fit", event)
        const isFinished = event._tag === "CallFinished"
        if (isFinished) {
          const value: unknown = JSON.parse(event.arguments)
          check(
            typeof value === "object" && value !== null && !Array.isArray(value),
            "arguments that are no object",
            event
          )
        }
        items.push({ name: event.name, arguments: event.arguments, isFinished })
        open = undefined
      }
    }
  }
  if (open !== undefined) throw new Error("a call without an end")
  return items
}

export const textOf = (items: ReadonlyArray<Item>): string => items.filter((item) => typeof item === "string").join("")

export const callsOf = (items: ReadonlyArray<Item>): ReadonlyArray<Exclude<Item, string>> =>
  items.filter((item) => typeof item !== "string")

/** A small seeded generator, so that random cuts are the same in every run. */
export const seeded = (seed: number): () => number => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 0x100000000
  }
}

/** `text` in pieces, cut at random; in some cuts the pieces are short, in others long. */
export const cutAtRandom = (text: string, random: () => number): Array<string> => {
  const longest = 1 + Math.floor(random() * random() * 60)
  const pieces: Array<string> = []
  for (let at = 0; at < text.length;) {
    const next = at + 1 + Math.floor(random() * longest)
    pieces.push(text.slice(at, next))
    at = next
  }
  return pieces
}
