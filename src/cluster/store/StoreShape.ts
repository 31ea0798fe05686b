/** What the store is to those who use it. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { StoreCommand } from "./client.ts"
import type { ScriptName } from "./scripts.ts"
import type { Seals } from "./seals.ts"
import type { StoreUnavailable } from "./StoreError.ts"

/** Characters that a store key has at least. */
export const leastKeyLength = 16

/** How a node reaches the store and who it is there. */
export interface StoreOptions {
  /** `redis://…`, `rediss://…` or `unix://…` (`address.ts`). */
  readonly url: Redacted.Redacted<string>
  /** Seals what lies in the store; 16 characters or more. */
  readonly key: Redacted.Redacted<string>
  /** Opens what an earlier key sealed. */
  readonly previousKey?: Redacted.Redacted<string> | undefined
  /** What the start fails with where neither key opens what is in the store. */
  readonly otherKeyAdvice?: string | undefined
  /** Milliseconds after which a command has failed, 50 to 1,500; 250 where it is absent. */
  readonly timeoutMillis?: number | undefined
  /** 1 to 64 of `[A-Za-z0-9._-]`; made up where it is absent. */
  readonly nodeId?: string | undefined
  /** The gateway's version, for those who look at the nodes. */
  readonly version?: string | undefined
}

/** What a node has. */
export interface Holdings {
  /** Ticket, account (empty: none) and fence. */
  readonly leases: ReadonlyArray<readonly [ticket: string, account: string, fence: number]>
  /** Ticket, wish, number, milliseconds left and waited, style. */
  readonly tickets: ReadonlyArray<
    readonly [ticket: string, wish: string, number: number, left: number, waited: number, style: string]
  >
}

/** The same in numbers. */
export interface HoldingCounts {
  readonly leases: number
  readonly tickets: number
  /** Claims that may be known on one side only at this moment. */
  readonly unsettled: number
}

/** How this node finds the store. */
export interface StoreStatus {
  readonly state: "up" | "lost"
  /** Unix milliseconds since when. */
  readonly since: number
  readonly url: string
  /** The server's version. */
  readonly version: string
  readonly roundTrip: number
  /** What is wrong with how the server is set up, in words. */
  readonly detail: string | undefined
}

export interface StoreShape extends Seals {
  /** This node's id. */
  readonly node: string
  /** The id of the store's data: a store that came back empty gets another one. */
  readonly epoch: () => string
  readonly status: () => StoreStatus
  readonly isUp: () => boolean
  /** Runs a script as this node; attaches first where that is needed. */
  readonly run: (
    name: ScriptName,
    ...args: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
  readonly send: (command: string, ...args: ReadonlyArray<string>) => Effect.Effect<unknown, StoreUnavailable>
  /**
   * Sends commands whose values may be as large as a piece (`pieces.ts`), together, on a connection of their own. All such
   * callers of a node take turns. A slow or failed one is not a sign that the store is lost.
   */
  readonly bulk: (commands: ReadonlyArray<StoreCommand>) => Effect.Effect<ReadonlyArray<unknown>, StoreUnavailable>
  /** A name, 16 hex digits, that stands for something in keys and values. */
  readonly nameOf: (text: string) => string
  /** The store's time by this node's clock, in milliseconds; the node's own may be wrong. */
  readonly clockOffset: () => number
  /**
   * Hears what the store and other nodes say, a line each: `grant …`, `refuse …`, `config <revision>`, `login <account>`,
   * `cleaned <account>`, `due <account>`, `ask <id> <node> <sealed question>`, `answer <id> <node> <pieces>`, `mark <kind> <until> <name>`; and `lost`, `up`, `beat`, `restored` (attached to an
   * empty store), `dropped <leases>` (the store had dropped this node while they ran).
   */
  readonly listen: (listener: (kind: string, rest: string) => void) => void
  /** A secret that all nodes have alike: what is there, else what is given; `undefined` where it cannot be opened. */
  readonly agree: (name: string, ours: string) => Effect.Effect<string | undefined, StoreUnavailable>
  /** Says what the node has: in whole whenever it attaches, in numbers at each beat. */
  readonly holds: (holdings: () => Holdings, counts: () => HoldingCounts) => void
  /** Says which revision of the configuration is in effect here. */
  readonly setRevision: (revision: number) => void
  readonly revision: () => number
  /** Says how to find out whether this node takes nothing new: others see it as draining. */
  readonly watchDraining: (isDraining: () => boolean) => void
  readonly isDraining: () => boolean
  /** Counts a copy that could not be written. */
  readonly lostWrite: () => void
  readonly counts: () => {
    readonly lostWrites: number
    readonly scripts: ReadonlyMap<string, number>
  }
}
