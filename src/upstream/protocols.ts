/**
 * The code of each protocol: how its driver is made, and how recordings of it are read. Their facts are in `contracts/drivers.ts`.
 */
import { chunkDecoder } from "../contracts/chat/readReply.ts"
import type { UpstreamProtocol } from "../contracts/drivers.ts"
import { chunkDecoder as generateDecoder } from "../contracts/generate/readReply.ts"
import { eventDecoder } from "../contracts/messages/readReply.ts"
import { eventDecoder as responsesDecoder } from "../contracts/responses/readReply.ts"
import type { ChunkDecoder } from "../contracts/shared/ChunkDecoder.ts"
import { makeOpenAiDriver, makeResponsesDriver } from "./compatible/driver.ts"
import type { Exchanges } from "./Exchange.ts"
import { makeGenerateDriver } from "./generate/driver.ts"
import { makeMessagesDriver } from "./messages/driver.ts"
import type { ServerOptions } from "./server/ServerOptions.ts"
import { makeSessionDriver } from "./session/driver.ts"
import type { Driver } from "./Upstream.ts"

/** The code of a protocol. */
export interface Protocol {
  readonly makeDriver: (exchanges: Exchanges["Service"], options: ServerOptions) => Driver
  /** Decodes a recorded reply; `undefined` for the protocol whose replies may have several rounds (`session/decodeReply.ts`). */
  readonly decoder: (() => ChunkDecoder) | undefined
}

export const protocols: { readonly [Name in UpstreamProtocol]: Protocol } = {
  session: { makeDriver: makeSessionDriver, decoder: undefined },
  openai: { makeDriver: makeOpenAiDriver, decoder: () => chunkDecoder([]) },
  responses: { makeDriver: makeResponsesDriver, decoder: () => responsesDecoder() },
  messages: { makeDriver: makeMessagesDriver, decoder: eventDecoder },
  generate: { makeDriver: makeGenerateDriver, decoder: generateDecoder }
}
