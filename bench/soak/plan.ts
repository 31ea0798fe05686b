/**
 * The plan of one request. It follows from the seed and the request's number.
 */
import { callForms } from "../../src/testing/provider/callForms.ts"
import { type FaultRow, faultRows } from "./faults.ts"
import { type Random, randomFrom } from "./random.ts"

export const styles = ["chat", "responses", "messages", "generate"] as const
export type Style = typeof styles[number]

/** The kind of a request. */
export type Kind =
  | "text"
  | "reasoning"
  | "search"
  | "tools"
  | "long"
  | "structured"
  | "stored"
  | "violation"
  | "embeddings"
  | "counting"
  | "bad"

/** How the client behaves. */
export type Behaviour =
  | { readonly _tag: "Reads" }
  /** Reads some bytes, then pauses for `pause` milliseconds, repeatedly. */
  | { readonly _tag: "Slow"; readonly pause: number }
  /** Disconnects: while waiting for an account, with half of its body sent, before the first byte, or after it. */
  | { readonly _tag: "Leaves"; readonly when: "queue" | "half-body" | "before" | "stream"; readonly after: number }
  /** Does not read a reply that is larger than the buffers on the way, until it is disconnected. */
  | { readonly _tag: "Stalls" }

/** The credential: a configured key, a key that comes and goes, or a direct token. */
export type Credential = "key" | "churn" | "direct"

/** A tool call that the reply must contain. */
export interface ExpectedCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The reply without faults. */
export interface Expected {
  readonly reasoning: string
  readonly text: string
  readonly calls: ReadonlyArray<ExpectedCall>
}

export interface Plan {
  readonly number: number
  readonly style: Style
  readonly kind: Kind
  readonly stream: boolean
  readonly model: string
  /** The user's message. */
  readonly prompt: string
  readonly expected: Expected
  readonly fault: FaultRow | undefined
  readonly credential: Credential
  /** The pinned account, as the number of a victim account. */
  readonly victim: number | undefined
  readonly behaviour: Behaviour
  /** The number of the broken body, for invalid requests. */
  readonly variant: number
}

/** Victim accounts, which faults may damage. */
export const victims = 3

/** Aliases, keys and accounts that come and go. */
export const churning = 4

const words = [
  "gateway",
  "the",
  "stream",
  "of",
  "wörter",
  "naïve",
  "日本語",
  "🙂",
  "👩‍👩‍👧",
  "**bold**",
  "a_b",
  "`code`",
  "3.14",
  "{x}",
  "<b>",
  "[1]",
  "—",
  "\n- item",
  "\n\nParagraph",
  "\"quoted\"",
  "\\n",
  "&amp;"
]

const piecesOf = (random: Random, first: string, most: number): ReadonlyArray<string> => [
  first,
  ...Array.from({ length: random.whole(2, most) }, () => ` ${random.pick(words)}`),
  "."
]

const say = (pieces: ReadonlyArray<string>): string => `!say ${JSON.stringify(pieces)}`

/** A script and its expected reply. */
interface Script {
  readonly lines: ReadonlyArray<string>
  /** Positions where the output limit cuts the reply. */
  readonly cut?: string
  readonly expected: Expected
}

const nothing: Expected = { reasoning: "", text: "", calls: [] }

const textScript = (random: Random, number: number): Script => {
  const pieces = piecesOf(random, `Answer ${number}:`, 30)
  return { lines: [say(pieces)], expected: { ...nothing, text: pieces.join("") } }
}

/** How a continued stream starts. A cut is no closer than leaves the longest text within the rounds that the gateway goes on for. */
const cuts = ["snapshot", "empty", "none", "snapshot auto"] as const

const scripts: Readonly<Record<Kind, (random: Random, number: number) => Script>> = {
  text: (random, number) => {
    const script = textScript(random, number)
    return random.chance(0.1)
      ? { ...script, cut: `!cut ${random.whole(3, 9)} ${random.pick(cuts)}` }
      : script
  },
  reasoning: (random, number) => {
    const thoughts = piecesOf(random, `Thought ${number}:`, 12)
    const { expected, lines } = textScript(random, number)
    return {
      lines: [`!think ${JSON.stringify(thoughts)}`, ...lines],
      expected: { ...expected, reasoning: thoughts.join("") }
    }
  },
  search: (random, number) => {
    const pieces = [`Found ${number}`, random.pick(["[cit", "[citation:", "[", "[citation:1"])]
    const rest = "[citation:1]".slice(pieces[1]!.length)
    return {
      lines: ["!search 3", say([...pieces, rest, " and", "[reference:0]", " more."])],
      expected: { ...nothing, text: `Found ${number} and more.` }
    }
  },
  tools: (random, number) => {
    const forms = Object.keys(callForms)
    const value = { city: `Oslo ${number}`, days: random.whole(1, 9) }
    return {
      lines: [`!chunk ${random.whole(1, 12)}`, `!call form=${random.pick(forms)} weather ${JSON.stringify(value)}`],
      expected: { ...nothing, calls: [{ name: "weather", arguments: value }] }
    }
  },
  long: (random) => {
    const count = random.whole(200, 3000)
    return {
      lines: [`!burst ${random.whole(1, 50)}`, `!count ${count}`],
      expected: { ...nothing, text: Array.from({ length: count }, (_, i) => i + 1).join(" ") }
    }
  },
  structured: (random, number) => {
    const text = JSON.stringify({ city: `Oslo ${number}`, days: random.whole(1, 9) })
    return { lines: [`!say ${text}`], expected: { ...nothing, text } }
  },
  stored: textScript,
  violation: textScript,
  embeddings: textScript,
  counting: textScript,
  bad: textScript
}

const kinds: Readonly<Record<Kind, number>> = {
  text: 34,
  reasoning: 12,
  search: 5,
  tools: 14,
  long: 8,
  structured: 5,
  stored: 8,
  violation: 2,
  embeddings: 4,
  counting: 4,
  bad: 6
}

const modelOf = (random: Random, style: Style, kind: Kind, number: number): string => {
  if (kind === "reasoning") return style === "messages" ? "msgcompat-opus-4-6" : "upstream-reasoner"
  if (kind === "search") return "upstream-chat-search"
  if (style === "messages") return "msgcompat-sonnet-4-5"
  if (kind === "text" && random.chance(0.08)) return `soak-alias-${number % churning}`
  return random.pick(["upstream-chat", "upstream-chat", "gpt-4o"])
}

const stylesOf: Readonly<Partial<Record<Kind, ReadonlyArray<Style>>>> = {
  stored: ["responses"],
  embeddings: ["chat"],
  counting: ["messages", "generate"],
  search: ["chat", "responses", "generate"]
}

const asks: ReadonlySet<Kind> = new Set<Kind>(["text", "reasoning", "search", "tools", "long", "structured"])

/** Kinds that do not test the credential. */
const alwaysKnown: ReadonlySet<Kind> = new Set<Kind>(["stored", "bad"])

const behaviourOf = (random: Random, kind: Kind): Behaviour => {
  if (!asks.has(kind)) return { _tag: "Reads" }
  const name = random.weighted({ reads: 82, slow: 6, queue: 2, half: 2, before: 3, stream: 4.7, stalls: 0.3 })
  switch (name) {
    case "reads":
      return { _tag: "Reads" }
    case "slow":
      return { _tag: "Slow", pause: random.whole(1, 60) }
    case "stalls":
      return { _tag: "Stalls" }
    case "half":
      return { _tag: "Leaves", when: "half-body", after: random.whole(0, 20) }
    default:
      return { _tag: "Leaves", when: name, after: random.whole(0, 60) }
  }
}

const faultOf = (random: Random, kind: Kind, behaviour: Behaviour): FaultRow | undefined => {
  if (kind !== "text" && kind !== "reasoning" && kind !== "tools") return undefined
  if (behaviour._tag === "Leaves" || behaviour._tag === "Stalls" || !random.chance(0.45)) return undefined
  const row = random.pick(faultRows)
  if (row.slow === true && !random.chance(0.05)) return undefined
  // A truncated call may be shown or not; other tests cover that.
  if (kind === "tools" && (row.effect === "shown" || row.effect === "ends" || row.lines.length > 1)) return undefined
  return row
}

/** The plan of the request with this number. */
export const planOf = (seed: string, number: number): Plan => {
  const random = randomFrom(seed, number)
  const kind = random.weighted(kinds)
  const style = random.pick(stylesOf[kind] ?? styles)
  const behaviour = behaviourOf(random, kind)
  const stream = behaviour._tag === "Stalls" || (behaviour._tag === "Leaves" && behaviour.when === "stream") ||
    random.chance(0.6)
  const { cut, expected, lines } = scripts[kind](random, number)
  const fault = faultOf(random, kind, behaviour)
  const credential = fault?.hurts === true
    ? random.pick<Credential>(["key", "direct"])
    : alwaysKnown.has(kind)
    ? "key"
    : random.weighted<Credential>({ key: 88, churn: 6, direct: 6 })
  const late = behaviour._tag === "Leaves" && behaviour.when !== "half-body"
  const prompt = [
    `Request ${number} of the soak ${seed}.`,
    // Of two cuts the later one says how often: a fault that needs one keeps its own.
    ...(cut === undefined ? [] : [cut]),
    ...(fault?.lines ?? []),
    ...(behaviour._tag === "Stalls" ? [`!fault long-line bytes=${8 * 1024 * 1024}`] : []),
    ...(late && behaviour.when === "before" ? ["!wait 200ms"] : []),
    ...(late && behaviour.when !== "before" ? [`!pace ${random.whole(5, 30)}ms`] : []),
    ...lines
  ]
  return {
    number,
    style,
    kind,
    stream: kind === "embeddings" || kind === "counting" ? false : stream,
    model: modelOf(random, style, kind, number),
    prompt: prompt.join("\n"),
    expected,
    fault,
    credential,
    victim: credential !== "direct" && (fault?.hurts === true || late && behaviour.when === "queue")
      ? random.whole(0, victims - 1)
      : undefined,
    behaviour,
    variant: random.whole(0, 1_000_000)
  }
}
