/**
 * Reads recorded replies by their contracts: what a server sent, and what the gateway sent to its client.
 */
import { isRecord } from "../domain/json.ts"
import type { FinishReason } from "../domain/ReplyEvent.ts"
import { type UpstreamEvent, UpstreamFinish } from "../domain/UpstreamEvent.ts"
import type { Contract } from "./Contract.ts"
import { contractOfConversation, contractOfDriver } from "./contractOf.ts"
import { contracts } from "./contracts.ts"
import { readEnvelope } from "./session/envelope.ts"
import { ReplyDecoder } from "./session/readReply.ts"
import type { RoundEnd } from "./session/roundEnd.ts"
import type { ChunkDecoder } from "./shared/ChunkDecoder.ts"

/** A reader of one reply, over all of its rounds with the server. */
export interface RecordedReader extends Pick<ChunkDecoder, "push" | "pushUnterminated" | "pushWhole" | "end"> {
  /** The next round of the reply begins. */
  readonly nextRound: (out: Array<UpstreamEvent>) => void
  /** The round has its end: only usage may follow. */
  readonly hasEnded: () => boolean
  /** Why the reply has failed; `undefined` if it has not. */
  readonly failure: () => string | undefined
  /** What a body says that is an error instead of a reply. */
  readonly errorIn: (body: unknown) => string | undefined
  /** How the contract says why a reply ended. */
  readonly finishNames: Readonly<Record<FinishReason, string>>
  /** The same for a reply that failed; `undefined` where an error alone says it. */
  readonly failureName: string | undefined
}

const readerOf = ({ facts, isError, readError, readReply }: Contract): RecordedReader => {
  let reply = readReply()
  return {
    push: (event, out) => reply.push(event, out),
    pushUnterminated: (event, out) => reply.pushUnterminated(event, out),
    pushWhole: (body, out) => reply.pushWhole(body, out),
    nextRound: (out) => {
      reply.end(out)
      reply = readReply()
    },
    end: (out) => reply.end(out),
    hasEnded: () => reply.finishing() || reply.done(),
    failure: () => {
      const failure = reply.failure()
      return failure === undefined ? undefined : failure.message || failure.reason || failure.kind
    },
    errorIn: (body) => isRecord(body) && isError(body) ? readError(body).message : undefined,
    finishNames: facts.finishNames,
    failureName: facts.failureName
  }
}

const sessionReader = (): RecordedReader => {
  const reply = new ReplyDecoder()
  let hasBegun = false
  let isNext = false
  let ended: RoundEnd | undefined
  /** A round that was refused has no events, and is not part of the reply. */
  const begin = () => {
    if (hasBegun && isNext) {
      reply.endRound()
      reply.startRound()
    }
    hasBegun = true
    isNext = false
  }
  return {
    push: (event, out) => {
      begin()
      reply.push(event, out)
    },
    pushUnterminated: (event, out) => {
      begin()
      reply.pushUnterminated(event, out)
    },
    // Only streams are replies.
    pushWhole: () => {},
    nextRound: () => {
      isNext = true
    },
    end: (out) => {
      ended = reply.endRound()
      reply.end(out)
      if (ended._tag === "Finished") out.push(UpstreamFinish(ended.reason))
    },
    hasEnded: () => reply.final || reply.closed,
    failure: () => {
      const end = ended ?? (reply.failed ? reply.endRound() : undefined)
      return end?._tag === "Failed" ? end.trouble.message ?? end.trouble.reason ?? end.trouble.kind : undefined
    },
    errorIn: (body) => {
      const envelope = isRecord(body) && "code" in body ? readEnvelope(200, JSON.stringify(body)) : undefined
      return envelope?._tag === "Refused" ? envelope.facts.message ?? envelope.facts.kind : undefined
    },
    // The contract has no word for the reasons of an end.
    finishNames: contracts.openai.facts.finishNames,
    failureName: undefined
  }
}

/** Starts to read what a server sent by its protocol. */
export const serverReader = (protocol: string): RecordedReader => {
  const contract = contractOfDriver(protocol)
  return contract === undefined ? sessionReader() : readerOf(contract)
}

/** Starts to read what a client of a style got; `undefined` for styles whose replies are no conversation. */
export const clientReader = (style: string): RecordedReader | undefined => {
  const contract = contractOfConversation(style)
  return contract === undefined ? undefined : readerOf(contract)
}
