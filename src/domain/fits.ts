/**
 * Which targets of a route hold a request, by the windows and the input of their models. Pure.
 *
 * Only what is known of a model leaves it out: a target with an unknown window or input may hold any request.
 */
import type { Conversation, Part } from "./Conversation.ts"
import type { Modality, ModelFacts } from "./modelFacts.ts"

/** Tokens of a window; `undefined` for an unknown one. */
export type Windows = ReadonlyArray<number | undefined>

/** The tokens that a request asks for at most; 0 if it does not say. */
export const outputOf = ({ sampling }: Conversation): number => sampling.maxCompletionTokens ?? sampling.maxTokens ?? 0

/** Whether a window is surely too small: estimates may be too high by a fifth. `prompt` is the estimated number of tokens. */
export const exceeds = (window: number | undefined, prompt: number, output: number): boolean =>
  window !== undefined && prompt * 4 / 5 + output > window

/** The smallest window, if they differ: only then is there something to choose by them. */
export const smallestOf = (windows: Windows): number | undefined => {
  const known = windows.filter((window) => window !== undefined)
  return known.length > 0 && windows.some((window) => window !== windows[0]) ? Math.min(...known) : undefined
}

/**
 * The places of the windows that may hold a prompt with its output, in their order. If none does, the place of the largest one: its server
 * decides about the refusal.
 */
export const fitting = (windows: Windows, prompt: number, output: number): ReadonlyArray<number> => {
  const fits = windows.flatMap((window, place) => exceeds(window, prompt, output) ? [] : [place])
  if (fits.length > 0) return fits
  const most = Math.max(...windows.map((window) => window ?? 0))
  return [windows.findIndex((window) => window === most)]
}

const charsOf = (part: Part): number => {
  if (part._tag === "Text" || part._tag === "Reasoning") return part.text.length
  if (part._tag === "Call") return part.arguments.length
  return part._tag === "Result" ? part.content.reduce((sum, each) => sum + charsOf(each), 0) : 0
}

/** The characters of the turns, some of which may be in a store rather than in the body. One step for each part. */
const turnChars = ({ turns }: Conversation): number =>
  turns.reduce((sum, { parts }) => sum + parts.reduce((of, part) => of + charsOf(part), 0), 0)

/**
 * Whether windows decide where a conversation goes: they differ, and it may exceed the smallest one. A token has at least one character. `bodyChars`: those of
 * the request's body; `undefined` if they are unknown.
 */
export const windowsDecide = (windows: Windows, conversation: Conversation, bodyChars: number | undefined): boolean => {
  const smallest = smallestOf(windows)
  if (smallest === undefined) return false
  return bodyChars === undefined || Math.max(bodyChars, turnChars(conversation)) + outputOf(conversation) > smallest
}

const modalityOf = (part: Part): Modality | undefined => {
  if (part._tag === "Image") return "image"
  if (part._tag !== "File") return undefined
  if (part.kind !== "file") return part.kind
  const { mediaType, name } = part
  return mediaType === "application/pdf" || (mediaType === undefined && name?.toLowerCase().endsWith(".pdf") === true)
    ? "pdf"
    : undefined
}

/** Whether a model reads all pictures, PDFs, audio and video of a conversation, as far as its input is known. */
export const reads = ({ input }: ModelFacts, { turns }: Conversation): boolean => {
  if (input === undefined) return true
  const isRead = (part: Part): boolean => {
    if (part._tag === "Result") return part.content.every(isRead)
    const modality = modalityOf(part)
    return modality === undefined || input.includes(modality)
  }
  return turns.every(({ parts }) => parts.every(isRead))
}
