/**
 * Event streams as steps: a round of a reply with its faults, or a recorded stream.
 */
import type { Fault } from "./Fault.ts"
import { streamWith } from "./faults.ts"
import type { Reply } from "./Reply.ts"
import { draftRound, type MessageIds, type Round } from "./round.ts"
import { Chunk, type Step, Wait } from "./Step.ts"
import { streamHead, writeStream } from "./wire.ts"

/** A round of a reply. */
export const replyStream = (
  reply: Reply,
  ids: MessageIds,
  round: Round,
  faults: ReadonlyArray<Fault>
): ReadonlyArray<Step> =>
  writeStream(
    faults.reduce((draft, fault) => streamWith(fault, draft), draftRound(reply, ids, round)),
    reply
  )

/** A recorded stream, byte for byte. */
export const rawStream = (raw: string | Uint8Array, chunk: number | undefined): ReadonlyArray<Step> => {
  const bytes = typeof raw === "string" ? Buffer.from(raw) : raw
  if (chunk === undefined) return [streamHead, Chunk(bytes, 0)]
  const steps: Array<Step> = [streamHead]
  for (let i = 0; i < bytes.length; i += chunk) steps.push(Chunk(bytes.subarray(i, i + chunk), 0), Wait(0))
  return steps
}
