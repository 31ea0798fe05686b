/** How a reference upstream is set up. */

/** An account that the upstream knows. */
export interface KnownAccount {
  readonly email?: string | undefined
  /** National digits, as the protocol sends them. */
  readonly mobile?: string | undefined
  readonly password: string
  readonly suspended?: boolean | undefined
}

export interface ReferenceOptions {
  /** Who may log in; left out, anybody may with any password. */
  readonly accounts?: ReadonlyArray<KnownAccount> | undefined
  /** Accepts tokens that it never gave out; by default where anybody may log in. */
  readonly anyToken?: boolean | undefined
  /** Milliseconds after which a token has expired; by default never. */
  readonly tokenLifetime?: number | undefined
  /** HTTP status of a refused token (200). */
  readonly refusedTokenStatus?: number | undefined
  /** Most completions of an account that run at once (no limit). */
  readonly maxRunning?: number | undefined
  /** Longest prompt in characters (no limit). */
  readonly maxPrompt?: number | undefined
  /** Default of `!pace`, in milliseconds; by default streams leave as fast as they can. */
  readonly pace?: number | undefined
  /** Default of `!burst` (1). */
  readonly burst?: number | undefined
  /** Sessions that are kept; the oldest go first, never one whose reply runs (10,000). */
  readonly maxSessions?: number | undefined
  /** Characters that the turns of all sessions may hold together, a piece of a reply counting as 64 (64 Mi). */
  readonly maxCharacters?: number | undefined
  /** Requests that the report shows, the latest (256). */
  readonly remember?: number | undefined
  /** Milliseconds that an idle connection stays open (65,000). */
  readonly keepAlive?: number | undefined
  /** Makes session ids; by default they are counted. */
  readonly newSessionId?: (() => string) | undefined
}
