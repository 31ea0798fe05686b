/**
 * What of a conversation only its maker can read or find, for servers of the Responses API: which refusals are about that, and the
 * conversation without it.
 */
import type { Conversation, Part, Turn } from "../../domain/Conversation.ts"
import { refusesLength, refusesModel } from "../../domain/failureReasons.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import { type LeftOut, plainForm, type PlainOptions } from "./plainForm.ts"

/** A conversation without what its server cannot read or find. */
export interface PlainConversation {
  readonly conversation: Conversation
  /** The paths of what was left out, in the caller's request. */
  readonly left: ReadonlyArray<string>
}

/** A conversation that a server is asked with once more in the same try. */
export interface RepeatedConversation extends PlainConversation {
  /** Learns that the server has taken it. `now`: monotonic milliseconds. */
  readonly taken: (now: number) => void
}

/** What of a conversation only its maker, or not every server, can read or find: seals, ids of items, stored responses, thinking. */
export interface SealedRequests {
  /** True for a refusal of what only its maker can read or find. */
  readonly refused: (failure: UpstreamFailure) => boolean
  /** The conversation without seals that are foreign; `undefined` if it has none. `now`: monotonic milliseconds. */
  readonly plain: (
    conversation: Conversation,
    model: UpstreamModel,
    now: number,
    isForeign: (seal: string) => boolean
  ) => PlainConversation | undefined
  /**
   * The conversation without what a failure is about; `undefined` if it has nothing of that. `isPlain`: it is in plain form already. `now`:
   * monotonic milliseconds.
   */
  readonly repeated: (
    failure: UpstreamFailure,
    conversation: Conversation,
    model: UpstreamModel,
    now: number,
    isPlain: boolean
  ) => RepeatedConversation | undefined
  /** The conversation as the id of the stored response that it continues, and the new items alone; `undefined` without new items. */
  readonly byId: (conversation: Conversation) => Conversation | undefined
}

const refusalCodes: ReadonlySet<string | undefined> = new Set([
  "invalid_encrypted_content",
  "previous_response_not_found"
])

/** The words of refusals without a code, of the vendor and of servers that keep no responses. */
const refusalWords =
  /items are not persisted|\bitem with id '[^']{1,200}' not found|without its required |previous_response_id|previous response|response with id|encrypted content .{0,300}could not be /is

/** True for a refusal of a seal, an item's id or a stored response. Such a request can be asked in its plain form. */
export const refusesSeal = ({ kind, message = "", reason, serverCode, status = 400 }: UpstreamFailure): boolean =>
  kind === "refused" && (
    refusalCodes.has(serverCode) || refusalCodes.has(reason) ||
    (status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429 &&
      refusalWords.test(message.slice(0, 2_000)))
  )

/** True for the refusal of a server that does not have the endpoint, and not of one that lacks the model. */
export const lacksEndpoint = (failure: UpstreamFailure): boolean =>
  failure.kind === "refused" && !refusesModel(failure) && !refusesSeal(failure) &&
  (failure.status === 404 || failure.status === 405 || failure.status === 501)

/** Fields of a request that thinking may be refused by. */
const fieldsOfThinking = /^(?:input|messages|reasoning)\b/

/** True for a refusal that may be about thinking in the conversation, in words of which servers have many. */
const mayRefuseThinking = (failure: UpstreamFailure): boolean => {
  const { kind, param, status = 400 } = failure
  return kind === "refused" && (status === 400 || status === 404 || status === 422) && !refusesModel(failure) &&
    !refusesLength(failure) && (param === undefined || fieldsOfThinking.test(param))
}

/** The items of reasoning that belong to a call. */
const itemsOfCall = "reasoning_items"

const unsealedPart = (part: Part): Part => {
  if (part._tag !== "Call" || part.sealed?.[itemsOfCall] === undefined) return part
  const { [itemsOfCall]: _, ...sealed } = part.sealed as JsonFields & { readonly [itemsOfCall]?: unknown }
  return { ...part, sealed: sealed as JsonFields }
}

const unsealedTurn = (turn: Turn): Turn => {
  const parts = turn.parts.map(unsealedPart)
  return parts.every((part, i) => part === turn.parts[i]) ? turn : { ...turn, parts }
}

/** A conversation of another style without the items of reasoning that were kept for its calls. */
const unsealed = (conversation: Conversation): Conversation | undefined => {
  const turns = conversation.turns.map(unsealedTurn)
  return turns.every((turn, i) => turn === conversation.turns[i]) ? undefined : { ...conversation, turns }
}

/** A conversation of another style without its thinking; `undefined` if it has none. */
const thoughtless = (conversation: Conversation): Conversation | undefined => {
  const isThought = ({ _tag }: Part) => _tag === "Reasoning"
  return conversation.turns.some(({ parts }) => parts.some(isThought))
    ? {
      ...conversation,
      turns: conversation.turns.map((turn) => ({ ...turn, parts: turn.parts.filter((part) => !isThought(part)) }))
    }
    : undefined
}

/** The path in the caller's request. Of what a stored response has, seals are named alone. */
const pathsOf = ({ index, path }: LeftOut, { continued }: VendorFields): ReadonlyArray<string> => {
  const own = index - (continued?.items ?? 0)
  return own >= 0 ? [`input[${own}]${path}`] : path === "" ? [] : [`previous_response_id${path}`]
}

/** Which models' thinking the server reads. `now`: monotonic milliseconds. */
export interface ReadThinking {
  readonly isRead: (model: UpstreamModel, now: number) => boolean
  /** The server has refused thinking that it was believed to read, and has taken the rest. */
  readonly refused: (model: UpstreamModel, now: number) => void
}

const nothing = () => {}

/** Makes the functions. `isNative`: the server gets the request as its caller wrote it. */
export const makeSeals = (
  isNative: (conversation: Conversation) => boolean,
  thinking: ReadThinking
): SealedRequests => {
  const plainOf = (
    conversation: Conversation,
    options: PlainOptions
  ): PlainConversation | undefined => {
    const own = conversation.vendorFields
    if (own === undefined || !isNative(conversation)) {
      const plain = unsealed(conversation)
      return plain === undefined ? undefined : { conversation: plain, left: [] }
    }
    const plain = plainForm(own.fields, options)
    if (plain === undefined) return undefined
    return {
      conversation: { ...conversation, vendorFields: { ...own, fields: plain.fields } },
      left: plain.left.flatMap((each) => pathsOf(each, own))
    }
  }

  /** The conversation without thinking that has no seal. */
  const unthinking = (conversation: Conversation): PlainConversation | undefined => {
    if (isNative(conversation)) return plainOf(conversation, { readsThinking: false, isForeign: undefined })
    const rest = thoughtless(conversation)
    return rest === undefined ? undefined : { conversation: rest, left: [] }
  }

  const repeated = (
    failure: UpstreamFailure,
    conversation: Conversation,
    model: UpstreamModel,
    now: number,
    isPlain: boolean
  ): RepeatedConversation | undefined => {
    const readsThinking = thinking.isRead(model, now)
    if (refusesSeal(failure) && !isPlain) {
      const plain = plainOf(conversation, { readsThinking, isForeign: undefined })
      if (plain !== undefined) return { ...plain, taken: nothing }
    }
    // What the caller itself sends of thinking is its own, unless the gateway has changed it.
    const isOwn = isNative(conversation) && !isPlain
    if (isOwn || !readsThinking || !mayRefuseThinking(failure)) return undefined
    const rest = unthinking(conversation)
    return rest === undefined ? undefined : { ...rest, taken: (now) => thinking.refused(model, now) }
  }

  return {
    refused: refusesSeal,
    repeated,
    byId: (conversation) => {
      const own = conversation.vendorFields
      const input = own?.fields["input"]
      if (own?.continued === undefined || !isNative(conversation) || !Array.isArray(input)) return undefined
      const { id, items } = own.continued
      const added = (input as ReadonlyArray<Json>).slice(items)
      return added.length === 0 ? undefined : {
        ...conversation,
        vendorFields: { ...own, fields: { ...own.fields, input: added, previous_response_id: id } }
      }
    },
    plain: (conversation, model, now, isForeign) =>
      plainOf(conversation, { isForeign, readsThinking: thinking.isRead(model, now) })
  }
}
