/**
 * What webhooks report: the types of events, when each is sent, and the fields of its data. Documents and the compiler read this table.
 *
 * Data names ids and names of keys, hashes and notes of accounts, upstreams, models, windows, shares, amounts and times. It has no credential, no
 * address, no prompt and no reply.
 */

const budget = [
  "key",
  "name",
  "account",
  "note",
  "upstream",
  "window",
  "unit",
  "limit",
  "used",
  "share",
  "resets_at"
] as const

const quota = ["account", "note", "upstream", "window", "model", "limit", "remaining", "share", "resets_at"] as const

const pool = ["upstream", "cooling", "out"] as const

/** Each type with the fields of its data. */
export const noticeTypes = {
  "budget.warning": {
    when: "80 % of a limit of a key, or of a budget of an account or an upstream, is used in its window.",
    data: budget
  },
  "budget.reached": { when: "The limit or the budget is used, or a request was beyond it.", data: budget },
  "account.refused": {
    when: "A server refuses an account or has suspended it.",
    data: ["account", "note", "upstream", "reason"]
  },
  "account.back": { when: "It serves again.", data: ["account", "note", "upstream"] },
  "pool.empty": { when: "No account of an upstream is in rotation.", data: pool },
  "pool.back": { when: "One is in rotation again.", data: pool },
  "upstream.cooled": {
    when: "One of several upstreams is left out after failures.",
    data: ["upstream", "reason", "seconds"]
  },
  "upstream.back": { when: "It serves again.", data: ["upstream"] },
  "store.lost": { when: "The shared store does not answer.", data: ["since"] },
  "store.back": { when: "It answers again.", data: ["since"] },
  "quota.low": { when: "A window of an account's quota is used to 80 %.", data: quota },
  "quota.exhausted": { when: "It is used up.", data: quota },
  "price.missing": {
    when: "A request used units without a price.",
    data: ["upstream", "model", "units"]
  },
  "webhook.test": { when: "An operator tests the webhook.", data: ["webhook"] }
} as const satisfies Readonly<Record<string, { readonly when: string; readonly data: ReadonlyArray<string> }>>

export type NoticeType = keyof typeof noticeTypes

type DataValue = string | number | null | ReadonlyArray<string>

/** The data of an event. */
export type NoticeData<Type extends NoticeType> = {
  readonly [Field in (typeof noticeTypes)[Type]["data"][number]]: DataValue
}

/** An event for webhooks. */
export interface Notice {
  readonly type: NoticeType
  /** What it is about. An event of a window is about the window too. */
  readonly subject: string
  /** When it happened, in Unix milliseconds. */
  readonly at: number
  /** When the next event of the type and subject may be sent: the end of its window, or a minute later. Unix milliseconds. */
  readonly until: number
  /** The end of its window in Unix milliseconds; `undefined` for an event without one. */
  readonly window: number | undefined
  readonly data: Readonly<Record<string, DataValue>>
}

/** The id of an event, which is the same on all nodes: a hash of its type, subject and window, which is else the minute of its time. */
export const noticeId = (
  { at, subject, type, window }: Pick<Notice, "at" | "subject" | "type" | "window">,
  sha256Hex: (text: string) => string
): string => `evt_${sha256Hex(JSON.stringify([type, subject, window ?? Math.floor(at / 60_000)])).slice(0, 32)}`

const isType = (name: string): name is NoticeType => Object.hasOwn(noticeTypes, name)

/** The types that a list chooses: names, and beginnings before a `*`. A pattern that names no type chooses nothing. */
export const typesNamed = (patterns: ReadonlyArray<string>): ReadonlySet<NoticeType> => {
  const chosen = new Set<NoticeType>()
  for (const pattern of patterns) {
    if (isType(pattern)) chosen.add(pattern)
    if (!pattern.endsWith("*")) continue
    for (const name of Object.keys(noticeTypes)) {
      if (isType(name) && name.startsWith(pattern.slice(0, -1))) chosen.add(name)
    }
  }
  return chosen
}
