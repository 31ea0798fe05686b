/**
 * Whether a turn of a conversation finds its prompt in the cache of its server, and why not. Pure.
 *
 * A prompt is a row of elements: each tool, the system prompt, each turn. Of an answered prompt a thread keeps a sum of each beginning, in
 * which a change of any earlier element shows. The next prompt is compared with the thread before it is sent: the tokens of the common
 * beginning should come from the cache.
 */
import type { Conversation, Part, ToolDeclaration, Turn, VendorTool } from "./Conversation.ts"
import { type Cooperative, pieceChars, Slice } from "./stream/cooperative.ts"
import type { Usage } from "./units.ts"

/** Why another account or target answered a turn than the one before it. */
export const moveCauses = ["full", "out", "quota", "budget", "disabled", "pinned", "priority", "target"] as const

export type MoveCause = (typeof moveCauses)[number]

/** Why a turn was no hit, in the order in which the reasons are looked at. */
export const missReasons = [
  "first_turn",
  "not_reported",
  "too_small",
  "moved",
  "expired",
  "changed",
  "not_kept"
] as const

export type MissReason = (typeof missReasons)[number]

/** `hit`: at least `hitShare` of the predicted tokens were read. `none`: nothing was predicted, and nothing was read. */
export const cacheResults = ["hit", "partial", "miss", "none"] as const

export type CacheResult = (typeof cacheResults)[number]

const hitShare = 0.8

/** What the cache of its server was to a turn. Counts are tokens. */
export interface PromptCache {
  readonly prompt: number
  readonly read: number
  readonly written: number
  readonly predicted: number
  readonly result: CacheResult
  /** `undefined` for a hit. */
  readonly reason: MissReason | undefined
  /** The first element that differs, of a turn that is `changed`: `tools[1]`, `system`, `messages[3]`. */
  readonly at: string | undefined
  /** Why a turn has `moved`. */
  readonly because: MoveCause | undefined
  /** Seconds since the turn before, of a turn whose lifetime has `expired`. */
  readonly age: number | undefined
}

/** The sums of a prompt. */
export interface PromptSums {
  /** The number of tools. */
  readonly tools: number
  readonly hasSystem: boolean
  /** A sum of 32 bits of each beginning, element by element, and its bytes. */
  readonly sums: ReadonlyArray<number>
  readonly ends: ReadonlyArray<number>
  /** The sum of the first turn after the system prompt alone, by which a thread is known while its tools or system prompt change. */
  readonly opening: number
  /** The conversation has been answered before. */
  readonly isContinued: boolean
}

/** Where a prompt was answered. */
export interface Answerer {
  readonly upstream: string
  /** The model's id within the upstream. */
  readonly model: string
  /** The account's hash; empty for a caller's own token. */
  readonly account: string
}

/** A conversation of a session, as it was at its last answer. */
export interface Thread extends Answerer {
  /** When its prompt was answered, and for how long the server keeps it, in milliseconds. */
  readonly at: number
  readonly lifetime: number
  /** Tokens and bytes of the prompt. */
  readonly tokens: number
  readonly bytes: number
  readonly tools: number
  readonly hasSystem: boolean
  readonly opening: number
  /** The number of elements. */
  readonly elements: number
  /** Sums of each `step` elements and of the whole prompt: `mostSums` of 4 bytes, which is 1 KiB. */
  readonly step: number
  readonly sums: Uint32Array
}

/** The sums that a thread keeps. Of longer prompts it keeps every second one, and so on. */
export const mostSums = 256

/** Characters at each end of a file's data that its sum has, beside its length. */
const dataEnds = 1_024

/** An odd number. */
const odd = 0x9e3779b1

/** How texts are measured: by functions of the platform, which read a text many times faster than a loop over its characters. */
export interface TextMeasure {
  /** A checksum of 32 bits that goes on from the one of the texts before. */
  readonly sum: (text: string, before: number) => number
  /** The bytes of a text in UTF-8. */
  readonly bytes: (text: string) => number
}

/** Sums one element. */
class ElementSum {
  sum = 0
  bytes = 0
  readonly #measure: TextMeasure

  constructor(measure: TextMeasure) {
    this.#measure = measure
  }

  add(text: string): void {
    this.sum = this.#measure.sum(text, this.sum)
    this.bytes += this.#measure.bytes(text)
  }

  /** Marks the end of a text. */
  end(): void {
    this.sum = Math.imul(this.sum ^ 1, odd) >>> 0
  }
}

function* addText(text: string, into: ElementSum, slice: Slice): Cooperative<void> {
  for (let from = 0; from < text.length; from += pieceChars) {
    const end = Math.min(text.length, from + pieceChars)
    if (slice.add(0, end - from)) yield slice.end()
    into.add(text.slice(from, end))
  }
  into.end()
}

/** Adds data whose change shows in its length or at its ends. */
const addData = (data: string, into: ElementSum): void => {
  into.add(String(data.length))
  into.add(data.slice(0, dataEnds))
  into.add(data.slice(Math.max(dataEnds, data.length - dataEnds)))
  into.end()
}

/** Adds the words of a part. What the caller's contract says beside them, such as the marks of caches, moves from turn to turn. */
function* addPart(part: Part, into: ElementSum, slice: Slice): Cooperative<void> {
  if (slice.add(1)) yield slice.end()
  into.add(part._tag)
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return yield* addText(part.text, into, slice)
    case "Image":
    case "File":
      return addData(part.data ?? part.url ?? ("id" in part ? part.id : undefined) ?? "", into)
    case "Call":
      yield* addText(part.name, into, slice)
      return yield* addText(part.arguments, into, slice)
    case "Result":
      into.add(part.callId)
      for (const content of part.content) yield* addPart(content, into, slice)
  }
}

function* addTurn({ parts, role }: Turn, into: ElementSum, slice: Slice): Cooperative<void> {
  into.add(role)
  into.end()
  for (const part of parts) yield* addPart(part, into, slice)
}

/** The tools in the caller's order, with those that the vendor runs. */
const toolsOf = ({ tools, vendorTools = [] }: Conversation): ReadonlyArray<ToolDeclaration | VendorTool> => {
  if (vendorTools.length === 0) return tools
  const all: Array<ToolDeclaration | VendorTool> = [...tools]
  for (const tool of vendorTools) all.splice(tool.index, 0, tool)
  return all
}

function* addTool(tool: ToolDeclaration | VendorTool, into: ElementSum, slice: Slice): Cooperative<void> {
  if ("index" in tool) {
    const { cache_control: _, ...fields } = tool.vendorFields.fields
    return yield* addText(JSON.stringify(fields), into, slice)
  }
  const { description = "", name, parameters } = tool
  yield* addText(name, into, slice)
  yield* addText(description, into, slice)
  yield* addText(parameters === undefined ? "" : JSON.stringify(parameters), into, slice)
}

/** Sums a prompt, in one pass. */
export function* sumPrompt(conversation: Conversation, measure: TextMeasure): Cooperative<PromptSums> {
  const slice = new Slice()
  const sums: Array<number> = []
  const ends: Array<number> = []
  let whole = 0
  let bytes = 0
  const close = (element: ElementSum): number => {
    whole = Math.imul((whole << 5 | whole >>> 27) ^ element.sum, odd)
    bytes += element.bytes
    sums.push(whole >>> 0)
    ends.push(bytes)
    return element.sum
  }
  const tools = toolsOf(conversation)
  for (const tool of tools) {
    const element = new ElementSum(measure)
    yield* addTool(tool, element, slice)
    close(element)
  }
  const { turns } = conversation
  const first = turns.findIndex(({ role }) => role !== "system")
  const systemTurns = first === -1 ? turns.length : first
  if (systemTurns > 0) {
    const element = new ElementSum(measure)
    for (const turn of turns.slice(0, systemTurns)) yield* addTurn(turn, element, slice)
    close(element)
  }
  let opening = 0
  let isContinued = false
  for (let i = systemTurns; i < turns.length; i++) {
    const element = new ElementSum(measure)
    yield* addTurn(turns[i]!, element, slice)
    const sum = close(element)
    if (i === systemTurns) opening = sum
    isContinued ||= turns[i]!.role === "assistant"
  }
  return { tools: tools.length, hasSystem: systemTurns > 0, sums, ends, opening, isContinued }
}

/** The thread of a prompt that was answered. */
export const threadOf = (
  { ends, hasSystem, opening, sums, tools }: PromptSums,
  answered: Answerer & Pick<Thread, "at" | "lifetime" | "tokens">
): Thread => {
  const elements = sums.length
  let step = 1
  while (Math.ceil(elements / step) > mostSums) step *= 2
  const kept = Uint32Array.from(
    { length: Math.ceil(elements / step) },
    (_, i) => sums[Math.min(elements, (i + 1) * step) - 1]!
  )
  return { ...answered, bytes: ends.at(-1) ?? 0, tools, hasSystem, opening, elements, step, sums: kept }
}

/** What a prompt has in common with a thread: the number of its first elements that are the same, as far as the kept sums tell. */
const commonElements = ({ elements, step, sums }: Thread, prompt: PromptSums): number => {
  let common = 0
  for (let i = 0; i < sums.length; i++) {
    const end = Math.min(elements, (i + 1) * step)
    if (end > prompt.sums.length || prompt.sums[end - 1] !== sums[i]) break
    common = end
  }
  return common
}

/** The place of the first element that differs. */
const placeAfter = (common: number, thread: Thread, prompt: PromptSums): string => {
  if (common < Math.max(thread.tools, prompt.tools)) return `tools[${common}]`
  const turn = common - prompt.tools
  if (!thread.hasSystem && !prompt.hasSystem) return `messages[${turn}]`
  return turn === 0 ? "system" : `messages[${turn - 1}]`
}

/** A thread that a prompt continues, and the elements that they have in common. */
interface Continued {
  readonly thread: Thread
  readonly common: number
}

/**
 * The thread that a prompt continues, of those of its session, the newest last: the one with the longest common beginning that has a turn,
 * else the newest one with the same first turn. A conversation that was answered before without either continues the newest one.
 */
const continuedBy = (prompt: PromptSums, threads: ReadonlyArray<Thread>): Continued | undefined => {
  let best: Continued | undefined
  let opened: Continued | undefined
  let newest: Continued | undefined
  for (let i = threads.length - 1; i >= 0; i--) {
    const thread = threads[i]!
    const found = { thread, common: commonElements(thread, prompt) }
    newest ??= found
    if (thread.opening === prompt.opening) opened ??= found
    const hasTurn = found.common > prompt.tools + (prompt.hasSystem ? 1 : 0)
    if (hasTurn && (best === undefined || found.common > best.common)) best = found
  }
  return best ?? opened ?? (prompt.isContinued ? newest : undefined)
}

/** What is expected of the cache when a prompt is sent. */
export interface Expectation {
  /** The thread that the prompt continues; `undefined` for a new one. */
  readonly thread: Thread | undefined
  /** Prompt tokens that should come from the cache. */
  readonly predicted: number
  /** Why another account or target answers; `undefined` at the thread's own. */
  readonly because: MoveCause | undefined
  /** Seconds since the thread's last answer, if its lifetime has passed. */
  readonly age: number | undefined
  /** The first element that differs; `undefined` if the thread's prompt is the whole beginning. */
  readonly at: string | undefined
}

/**
 * Compares a prompt with the threads of its session. `now` is of the clock of `Thread.at`. `becauseOf` is asked if another account or target answers than that of the thread.
 */
export const expectationOf = (
  prompt: PromptSums,
  threads: ReadonlyArray<Thread>,
  { account, model, upstream }: Answerer,
  now: number,
  becauseOf: (last: Answerer) => MoveCause
): Expectation => {
  const found = continuedBy(prompt, threads)
  if (found === undefined) {
    return { thread: undefined, predicted: 0, because: undefined, age: undefined, at: undefined }
  }
  const { common, thread } = found
  const hasMoved = thread.account !== account || thread.model !== model || thread.upstream !== upstream
  const isOver = now - thread.at >= thread.lifetime
  const isWhole = common === thread.elements
  const share = common === 0 ? 0 : Math.min(1, prompt.ends[common - 1]! / Math.max(1, thread.bytes))
  const tokens = isWhole ? thread.tokens : Math.floor(thread.tokens * share)
  return {
    thread,
    predicted: hasMoved || isOver ? 0 : tokens,
    because: hasMoved ? becauseOf(thread) : undefined,
    age: isOver ? Math.floor((now - thread.at) / 1_000) : undefined,
    at: isWhole ? undefined : placeAfter(common, thread, prompt)
  }
}

/** What a server has said of a prompt's tokens. */
export interface ReportedPrompt extends Pick<Usage, "promptTokens" | "cachedTokens" | "cacheWriteTokens"> {
  /** The usage has a count of cached tokens. */
  readonly isReported: boolean
}

/** What the cache was to a turn, once its usage is known. `least` are the tokens from which the server keeps a prompt. */
export const judgeCache = (
  { age, at, because, predicted, thread }: Expectation,
  { cacheWriteTokens: written = 0, cachedTokens: read, isReported, promptTokens: prompt }: ReportedPrompt,
  least: number
): PromptCache => {
  const result: CacheResult = read === 0
    ? predicted === 0 ? "none" : "miss"
    : read >= hitShare * predicted
    ? "hit"
    : "partial"
  const reason: MissReason | undefined = result === "hit"
    ? undefined
    : thread === undefined
    ? "first_turn"
    : !isReported
    ? "not_reported"
    : prompt < least
    ? "too_small"
    : because !== undefined
    ? "moved"
    : age !== undefined
    ? "expired"
    : at !== undefined
    ? "changed"
    : "not_kept"
  return {
    prompt,
    read,
    written,
    predicted,
    result,
    reason,
    at: reason === "changed" ? at : undefined,
    because: reason === "moved" ? because : undefined,
    age: reason === "expired" ? age : undefined
  }
}
