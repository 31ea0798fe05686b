/**
 * A driver as the matrix tests it: how its server writes replies, what arrives there, and what goes wrong. A new driver is a value of this
 * type beside the others, which the table in `matrix.test.ts` asks for.
 */
import type { RawConfig } from "../../../src/config/json.ts"
import type { ServerProtocol } from "../../../src/contracts/drivers.ts"
import type { FinishReason } from "../../../src/domain/ReplyEvent.ts"
import type { Answer, OpenAiServer } from "../../support/openaiServer.ts"
import type { Written } from "../../support/sameReply.ts"
import type { Ask, Block, StyleName } from "../../support/styleClients.ts"
import type { FailureName, StreamFaultName } from "./failures.ts"
import type { RequestName } from "./requests.ts"

/** A scripted server, and the address of it that an operator configures. */
export interface MatrixServer {
  readonly server: OpenAiServer
  readonly address: string
}

/** What a caller is told of a failure, and how often the server is asked for it. */
export interface Told {
  readonly status: number
  readonly code: string
  readonly message: RegExp
  readonly asked: 1 | 3
  /** Callers get a time to come back after, unless the reply has begun. */
  readonly waits: boolean
}

/** A reply that only this driver's server makes. */
export interface ReplyRow extends Written {
  readonly name: string
  readonly answer: Answer
  readonly ask?: Partial<Ask>
  /** All styles, unless the reply has words of the server that one of them shows as they are. */
  readonly styles?: ReadonlyArray<StyleName>
}

/** A request that means something to this driver alone. */
export interface RequestRow {
  readonly name: string
  readonly in: { readonly [Style in StyleName]?: object }
  /** The fields of the server's request. Those that the driver `watches` are absent where they are not named. */
  readonly arrives: object
  /** The names in the header of fields that the server is not sent. */
  readonly ignored?: { readonly [Style in StyleName]?: string }
}

export interface MatrixDriver {
  readonly name: ServerProtocol
  /** The header of a key, in lower case. */
  readonly keyHeader: string
  /** The style of the same vendor, whose requests and replies are not translated; none is for the most common one. */
  readonly own?: StyleName
  readonly start: () => Promise<MatrixServer>
  /** The models of the upstream: `upstream-chat` and `upstream-reasoner` behind the server's own names. */
  readonly models: RawConfig
  /** A reply as the server writes it, whole or streamed. */
  readonly write: (pieces: ReadonlyArray<Block>, finish: FinishReason, stream: boolean) => Answer
  /** The beginning of a stream, with the text `Hello`. */
  readonly hello: string
  /** What arrives of each request of the table: fields of the server's body. */
  readonly arrives: { readonly [Name in RequestName]: object }
  /** Fields that arrive only where a row names them. */
  readonly watches: ReadonlyArray<string>
  readonly failures: { readonly [Name in FailureName]: Answer }
  readonly streamFaults: { readonly [Name in StreamFaultName]: Answer }
  /** Where this vendor's words mean something else than the table says. */
  readonly told?: { readonly [Name in FailureName]?: Told }
  readonly replies?: ReadonlyArray<ReplyRow>
  readonly requests?: ReadonlyArray<RequestRow>
  readonly furtherFailures?: ReadonlyArray<readonly [about: string, answer: Answer, told: Told]>
  /** All styles, except one that shows the message of the server. */
  readonly furtherStreamFaults?: ReadonlyArray<
    readonly [about: string, fault: Answer, before: Told, after: Told, styles?: ReadonlyArray<StyleName>]
  >
}
