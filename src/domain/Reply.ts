/**
 * A whole reply: the fold of its events, from which every style renders its non-stream object.
 */
import { commonWords } from "../contracts/names.ts"
import type { JsonFields } from "./json.ts"
import type { FinishReason, ReplyEvent, ReplyExtra, Usage } from "./ReplyEvent.ts"
import { ExtraFold, isEventPlace, type ReplyExtras } from "./replyExtras.ts"
import type { FamilyName } from "./VendorFields.ts"

/** A part of a reply; adjacent text, and adjacent reasoning, is one block. */
export type ReplyBlock =
  | { readonly _tag: "Reasoning"; readonly text: string }
  | { readonly _tag: "Text"; readonly text: string }
  | {
    readonly _tag: "Call"
    readonly id: string
    readonly name: string
    readonly arguments: string
    readonly sealed: JsonFields | undefined
  }
  /** Sealed reasoning that ends here, or a block of content, in a family's format: for the renderers of that family. */
  | {
    readonly _tag: "Extra"
    readonly family: FamilyName
    readonly at: "reasoning" | "block"
    readonly value: JsonFields
  }

/** A call with its complete arguments. */
type ReplyCall = Extract<ReplyBlock, { readonly _tag: "Call" }>

/** A reply, with its blocks in the model's order. */
export interface Reply {
  readonly blocks: ReadonlyArray<ReplyBlock>
  /** The index of the choice; 0 for a reply of one. */
  readonly index: number
  readonly usage: Usage
  readonly finish: FinishReason
  readonly stopSequence: string | undefined
  /** The choices but the first, in the order of their indices, without usage of their own. */
  readonly others: ReadonlyArray<Reply>
  /** Fields of the server's reply that nothing else models, in the format of OpenAI-compatible servers. */
  readonly extras: ReplyExtras | undefined
  /** The same in another family's format, for the renderers of that family. */
  readonly vendorExtras: { readonly family: FamilyName; readonly extras: ReplyExtras } | undefined
}

/** Collects events into a reply, without calls that were cut off, since these must not look runnable. */
interface ReplyFold {
  readonly push: (event: ReplyEvent) => void
  readonly reply: () => Reply
}

const noUsage: Usage = { promptTokens: 0, completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 }

/** Starts the fold of one choice. */
const foldChoice = (index: number): ReplyFold => {
  const blocks: Array<ReplyBlock> = []
  let kind: "Reasoning" | "Text" | undefined
  let text = ""
  let extras: ExtraFold | undefined
  let own: { readonly family: FamilyName; readonly fold: ExtraFold } | undefined
  let usage = noUsage
  let finish: FinishReason = "stop"
  let stopSequence: string | undefined
  const close = () => {
    if (kind !== undefined) blocks.push({ _tag: kind, text })
    kind = undefined
    text = ""
  }
  const grow = (of: "Reasoning" | "Text", piece: string) => {
    if (kind !== of) {
      close()
      kind = of
    }
    text += piece
  }
  const extra = ({ at, family, value }: ReplyExtra) => {
    // The other events say the same.
    if (isEventPlace(at)) return
    if (at === "reasoning" || at === "block") {
      close()
      blocks.push({ _tag: "Extra", family, at, value })
    } else if (family === commonWords) {
      extras ??= new ExtraFold()
      extras.push({ at, value })
    } else {
      own ??= { family, fold: new ExtraFold() }
      own.fold.push({ at, value })
    }
  }
  return {
    push(event) {
      switch (event._tag) {
        case "ReasoningDelta":
          return grow("Reasoning", event.text)
        case "TextDelta":
          return grow("Text", event.text)
        case "CallFinished":
          close()
          blocks.push({
            _tag: "Call",
            id: event.id,
            name: event.name,
            arguments: event.arguments,
            sealed: event.sealed
          })
          return
        case "ReplyExtra":
          return extra(event)
        case "UsageReported":
          usage = event.usage
          return
        case "ChoiceOver":
        case "Finish":
          finish = event.reason
          stopSequence = event.stopSequence
          return
        case "CallStarted":
          return close()
        case "CallArguments":
        case "CallCutOff":
        case "ChoiceBegan":
      }
    },
    reply() {
      close()
      return {
        blocks,
        index,
        usage,
        finish,
        stopSequence,
        others: [],
        extras: extras?.extras,
        vendorExtras: own === undefined ? undefined : { family: own.family, extras: own.fold.extras }
      }
    }
  }
}

/** Fields of the whole reply, whichever choice they come beside. */
const isOfReply = (event: ReplyEvent): boolean =>
  event._tag === "ReplyExtra" && (event.at === "chunk" || event.at === "usage")

/** Starts a fold. */
export const foldReply = (): ReplyFold => {
  const first = foldChoice(0)
  /** All choices by their index, of a reply of several; a server may leave some out. */
  let all: Map<number, ReplyFold> | undefined
  let current = first
  return {
    push(event) {
      if (event._tag === "ChoiceBegan") {
        all ??= new Map([[0, first]])
        current = all.get(event.index) ?? foldChoice(event.index)
        all.set(event.index, current)
      } else if (event._tag === "UsageReported" || isOfReply(event)) first.push(event)
      else if (event._tag !== "Finish" || all === undefined) current.push(event)
    },
    reply() {
      const reply = first.reply()
      if (all === undefined) return reply
      const others = [...all.values()].filter((each) => each !== first).map((each) => each.reply())
      return { ...reply, others: others.toSorted((a, b) => a.index - b.index) }
    }
  }
}

const joined = (reply: Reply, kind: "Reasoning" | "Text"): string =>
  reply.blocks.reduce((text, block) => block._tag === kind ? text + block.text : text, "")

/** All of a reply's text. */
export const replyText = (reply: Reply): string => joined(reply, "Text")

/** All of a reply's reasoning. */
export const replyReasoning = (reply: Reply): string => joined(reply, "Reasoning")

/** A reply's calls, in order. */
export const replyCalls = (reply: Reply): ReadonlyArray<ReplyCall> =>
  reply.blocks.filter((block): block is ReplyCall => block._tag === "Call")

/** Folds events into a whole reply. */
export const replyOf = (events: Iterable<ReplyEvent>): Reply => {
  const fold = foldReply()
  for (const event of events) fold.push(event)
  return fold.reply()
}
