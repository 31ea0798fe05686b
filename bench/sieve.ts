/**
 * The speed of the sieve for prose, Markdown, a large argument and hostile input, the growth of its time per character, and its share of an
 * event in a stream with tools but without calls.
 */
import { assembleReply } from "../src/completion/assembleReply.ts"
import { chatFrames } from "../src/contracts/chat/writeReply.ts"
import { type ReplyEvent, type SieveEvent, TextDelta } from "../src/domain/ReplyEvent.ts"
import { clear, type Machine, type Transducer } from "../src/domain/stream/transducer.ts"
import { UpstreamText } from "../src/domain/UpstreamEvent.ts"
import { sieve } from "../src/sieve/sieve.ts"

/** One line of the report. */
export interface Row {
  readonly what: string
  readonly value: number
  readonly unit: string
}

const tools = [
  {
    name: "wx",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    strict: undefined
  },
  { name: "write_file", description: undefined, parameters: undefined, strict: undefined }
]

const withSieve = sieve({ tools, callId: (index) => `call_${index}` })

const withoutSieve: Transducer<string, SieveEvent> = () => ({
  push: (text, out) => {
    out.push(TextDelta(text))
  },
  end: () => undefined
})

const sentence =
  "The weather in Oslo is fine today, with a light wind from the west; tomorrow there may be some rain.\n"

const markdown =
  "## Files\n\nUse `npm test` or **run** [this](http://x/y):\n\n- one (1)\n- two\n\n```ts\nconst a: Array<string> = [{ b: 1 }]\n" +
  "if (a.length < 2) { return `x` }\n```\n\nThen a table:\n\n| a | b |\n| - | - |\n| <b>x</b> | {y} |\n\n"

/** A typical explanatory reply. */
const answer = sentence.repeat(4) + "\n" + sentence + markdown + sentence.repeat(3) +
  "\nUse `wx` for it, see [there](http://x/y).\n\n"

/** A text repeated to `length` characters. */
const fill = (text: string, length: number): string => text.repeat(Math.ceil(length / text.length)).slice(0, length)

/** Cuts `text` into pieces of the given sizes in turn. Pieces are flat strings, like those of a JSON parser. */
const cut = (text: string, sizes: ReadonlyArray<number>): Array<string> => {
  const pieces: Array<string> = []
  for (let at = 0, i = 0; at < text.length; i++) {
    const next = at + sizes[i % sizes.length]!
    pieces.push(JSON.parse(JSON.stringify(text.slice(at, next))))
    at = next
  }
  return pieces
}

const feed = (machine: Machine<string, SieveEvent>, pieces: ReadonlyArray<string>): void => {
  const out: Array<SieveEvent> = []
  for (const piece of pieces) {
    machine.push(piece, out)
    clear(out)
  }
  machine.end(out)
}

/** The best of several runs in milliseconds of CPU time. */
const timeOf = (body: () => void, runs: number): number => {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < runs; i++) {
    const start = process.cpuUsage()
    body()
    const used = process.cpuUsage(start)
    best = Math.min(best, (used.user + used.system) / 1000)
  }
  return best
}

const rate = (
  pieces: ReadonlyArray<string>,
  runs = 5,
  transducer: Transducer<string, SieveEvent> = withSieve
): number => {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return length / 1e6 / (timeOf(() => feed(transducer(), pieces), runs) / 1000)
}

const argument = (length: number): string =>
  `<tool_call>\n{"name": "write_file", "arguments": {"content": "${fill("const x = 1;\\n", length)}"}}\n</tool_call>`

const small = [4, 7, 12, 5, 9]

/** The gateway's work for one event: parse the upstream's frame, assemble the reply, render the client's frame. */
const pipeline = (sieve: typeof withSieve | undefined, frames: ReadonlyArray<string>): number => {
  const machine = assembleReply({
    sieve,
    stripMarkers: false,
    stop: undefined,
    reasoningCalls: undefined,
    singleCall: false,
    showReasoning: true,
    addCall: () => true,
    callId: (index) => `call_${index}`,
    promptTokens: () => 0,
    meter: undefined,
    keepSealed: undefined,
    keepSeal: undefined
  })
  const renderer = chatFrames({ id: "chatcmpl-0123456789", created: 1760000000, model: "upstream-chat" }, false)
  const events: Array<ReplyEvent> = []
  const out: Array<string> = []
  let bytes = 0
  for (const frame of frames) {
    const { v } = JSON.parse(frame) as { readonly v: string }
    machine.push(UpstreamText(v), events)
    for (const event of events) renderer.frames.push(event, out)
    clear(events)
    for (const text of out) bytes += Buffer.from(text).length
    clear(out)
  }
  return bytes
}

/** CPU time per event without and with a sieve, in alternating short runs on equal conditions. */
const added = (text: string): readonly [bare: number, sieved: number] => {
  const frames = cut(fill(text, 60_000), small).map((v) =>
    JSON.stringify({ p: "response/fragments/-1/content", o: "APPEND", v })
  )
  let bare = Number.POSITIVE_INFINITY
  let sieved = Number.POSITIVE_INFINITY
  for (let i = 0; i < 150; i++) {
    bare = Math.min(bare, timeOf(() => pipeline(undefined, frames), 1))
    sieved = Math.min(sieved, timeOf(() => pipeline(withSieve, frames), 1))
  }
  return [bare * 1e6 / frames.length, sieved * 1e6 / frames.length]
}

/** A reply in pieces. The middle pieces repeat `times` times as the same strings, so that only the sieve's memory grows. */
interface Reply {
  readonly before: ReadonlyArray<string>
  readonly again: ReadonlyArray<string>
  readonly times: number
  readonly after: ReadonlyArray<string>
}

const replyOf = (text: string, length: number, before = "", after = ""): Reply => ({
  before: cut(before, small),
  again: cut(text, small),
  times: Math.round(length / text.length),
  after: cut(after, small)
})

/**
 * Time per character by the length of the reply, for prose and for a call's argument. Runs alternate, so that all lengths have equal
 * conditions.
 */
const sizes = (): ReadonlyArray<readonly [name: string, nanos: number]> => {
  const replies: Readonly<Record<string, (length: number) => Reply>> = {
    "prose": (length) => replyOf(sentence.repeat(99), length),
    "an argument": (length) => {
      const [before, after] = argument(0).split("\"\"", 2)
      return replyOf("const x = 1;\\n".repeat(700), length, `${before}"`, `"${after}`)
    }
  }
  const runs = Object.entries(replies).flatMap(([name, replyOfLength]) =>
    [1e4, 1e5, 1e6, 1e7].map((length) => {
      const { after, again, before, times } = replyOfLength(length)
      const runsOf = Math.max(1, Math.round(1e6 / length))
      const characters = runsOf * times * again.reduce((sum, piece) => sum + piece.length, 0)
      const run = () => {
        const out: Array<SieveEvent> = []
        for (let i = 0; i < runsOf; i++) {
          const machine = withSieve()
          for (const piece of before) machine.push(piece, out)
          for (let k = 0; k < times; k++) {
            for (const piece of again) {
              machine.push(piece, out)
              clear(out)
            }
          }
          for (const piece of after) machine.push(piece, out)
          machine.end(out)
          clear(out)
        }
      }
      return { name: `${name} of ${length / 1000} kB, pieces of 4–12 characters`, run, characters }
    })
  )
  const best = runs.map(() => Number.POSITIVE_INFINITY)
  for (let i = 0; i < 10; i++) {
    runs.forEach(({ run }, k) => {
      best[k] = Math.min(best[k]!, timeOf(run, 1))
    })
  }
  return runs.map(({ characters, name }, k) => [name, characters / 1e3 / best[k]!])
}

/** Runs all measurements; takes about half a minute. */
export const sieveBench = (): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  const row = (what: string, value: number, unit: string): void => {
    rows.push({ what, value, unit })
  }
  const prose = fill(sentence, 20e6)
  row("prose, whole", rate([prose]), "MB/s")
  const pieces = cut(prose.slice(0, 4e5), small)
  row("prose, pieces of 4–12 characters", rate(pieces, 20), "MB/s")
  row("the same without a sieve", rate(pieces, 20, withoutSieve), "MB/s")
  row("Markdown with fences, whole", rate([fill(markdown, 10e6)]), "MB/s")
  row("Markdown with fences, pieces of 4–12 characters", rate(cut(fill(markdown, 4e6), small)), "MB/s")
  row("1 MB argument, whole", rate([argument(1e6)]), "MB/s")
  row("1 MB argument, pieces of one character", rate(cut(argument(1e6), [1])), "MB/s")
  const hostile = {
    "{": "{",
    "<": "<",
    "[": "[",
    "`": "`",
    "<tool_call>": "<tool_call>",
    "{\"name\":\"": "{\"name\":\"",
    "<invoke name=\"": "<invoke name=\""
  }
  for (const [name, text] of Object.entries(hostile)) {
    row(`hostile ${name}…, whole`, rate([fill(text, 2e6)], 3), "MB/s")
    row(`hostile ${name}…, pieces of one character`, rate(cut(fill(text, 5e5), [1]), 3), "MB/s")
  }
  for (const [name, speed] of sizes()) row(name, speed, "MB/s")
  const streams = { prose: sentence, "an answer in Markdown": answer, "Markdown and nothing else": markdown }
  for (const [name, text] of Object.entries(streams)) {
    const [bare, sieved] = added(text)
    row(`an event of a stream of ${name}, without a sieve`, bare, "ns")
    row(`an event of a stream of ${name}, with a sieve`, sieved, "ns")
    row(`added by the sieve to a stream of ${name}`, 100 * (sieved / bare - 1), "%")
  }
  return rows
}

if (import.meta.main) {
  for (const { unit, value, what } of sieveBench()) {
    console.log(`${what.padEnd(66)} ${value.toFixed(1).padStart(10)} ${unit}`)
  }
}
