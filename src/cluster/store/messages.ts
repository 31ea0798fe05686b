/**
 * The messages of the store and of other nodes: one line each, its kind and its fields with blanks between.
 *
 * Nodes of other versions write them too. A line of an unknown kind, or without a field of its kind, is no message and has no effect.
 * Fields after the known ones are of a later version, and are left out.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const Word = Schema.String

/** The last field of a kind, with the blanks in it. */
const Rest = Schema.String.annotate({ description: "The rest of the line" })

const Whole = Schema.String.check(Schema.isPattern(/^-?\d+$/)).pipe(
  Schema.decodeTo(Schema.Int, SchemaTransformation.numberFromString)
)

/** A kind of messages with its fields in the order of the line. */
const kindOf = <
  const Kind extends string,
  Fields extends { readonly [name: string]: Schema.Codec<unknown, string | undefined> }
>(kind: Kind, fields: Fields) => {
  const schema = Schema.TaggedStruct(kind, fields)
  const decode = Schema.decodeUnknownOption(schema)
  const names = Object.keys(fields)
  return {
    schema,
    read: (words: ReadonlyArray<string>) => {
      const given: Record<string, string> = { _tag: kind }
      for (const [i, name] of names.entries()) {
        const word = fields[name] === Rest ? words.slice(i).join(" ") : words[i]
        if (word !== undefined) given[name] = word
      }
      return decode(given)
    }
  }
}

const kinds = {
  /** A slot for a waiter of this node (`grant_of` of `pool.lua`). */
  grant: kindOf("grant", {
    ticket: Word,
    account: Word,
    fence: Whole,
    epoch: Word,
    token: Word,
    cleaning: Word,
    revision: Whole,
    pool: Word,
    coolings: Word,
    probes: Word,
    quota: Word,
    /** The number of the model that it serves; 0 without any. */
    model: Whole,
    /** Only in the reply of `acquire`. */
    memory: Schema.optionalKey(Word)
  }),
  /** No slot for a waiter of this node: the reason, and the milliseconds until an account is back, 0 for other reasons. */
  refuse: kindOf("refuse", { ticket: Word, reason: Word, left: Whole }),
  /** The revision of the shared configuration. */
  config: kindOf("config", { revision: Whole }),
  /** The token of an account was replaced. */
  login: kindOf("login", { account: Rest }),
  /** The windows of an account's quota are forgotten. */
  quota: kindOf("quota", { account: Rest }),
  /** The sessions of an account are deleted. */
  cleaned: kindOf("cleaned", { account: Rest }),
  /** This node is to try an account that is out. */
  due: kindOf("due", { account: Rest }),
  /** A name with its expiry, in Unix milliseconds of the store. */
  mark: kindOf("mark", { kind: Word, until: Whole, name: Rest }),
  /** A query of another node, encrypted. */
  ask: kindOf("ask", { id: Word, node: Word, question: Word }),
  /** Another node has stored its reply to a query, in so many chunks. */
  answer: kindOf("answer", { id: Word, node: Word, chunks: Whole }),
  /** A wrong login at a node; the address is a pseudonym. */
  wrong: kindOf("wrong", { node: Word, address: Word }),
  /** A wrong key at a node. */
  "wrong-key": kindOf("wrong-key", { node: Word, address: Word })
}

type Kind = keyof typeof kinds

/** A message of the store or of another node. */
export type StoreMessage = { readonly [K in Kind]: (typeof kinds)[K]["schema"]["Type"] }[Kind]

/** A message of a kind. */
export type MessageOf<K extends Kind> = (typeof kinds)[K]["schema"]["Type"]

/**
 * What this node itself notices: the store is lost, is available, has answered a heartbeat, or was empty when this node attached; or it
 * dropped this node while so many of its leases were in use.
 */
export type StoreNotice =
  | { readonly _tag: "lost" | "up" | "beat" | "restored" }
  | { readonly _tag: "dropped"; readonly leases: number }

/** What listeners to the store receive. */
export type StoreEvent = StoreMessage | StoreNotice

const isKind = (word: string): word is Kind => Object.hasOwn(kinds, word)

/** The message of a kind with the given fields; none if there is no such kind, or if a field is missing or has another form. */
export const messageOf = (kind: string, fields: ReadonlyArray<string>): Option.Option<StoreMessage> =>
  isKind(kind) ? kinds[kind].read(fields) : Option.none()

/** The message of a line. */
export const readMessage = (line: string): Option.Option<StoreMessage> => {
  const [kind = "", ...fields] = line.split(" ")
  return messageOf(kind, fields)
}

/**
 * The listeners of this node. They run in order and before `emit` returns, which a `PubSub` cannot promise: a grant counts before the next
 * reply of the store is read, and an emptied store is known before the attach ends that found it.
 */
export class StoreListeners {
  readonly #listeners: Array<(event: StoreEvent) => void> = []

  listen(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(listener)
  }

  emit(event: StoreEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  /** Passes on the messages among the lines. */
  receive(lines: ReadonlyArray<string>): void {
    for (const line of lines) {
      const message = readMessage(line)
      if (Option.isSome(message)) this.emit(message.value)
    }
  }
}
