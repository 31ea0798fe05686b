/**
 * Rows of usage, as the admin API tells them.
 */

export interface Measures {
  readonly requests: number
  readonly succeeded: number
  readonly failed: number
  readonly left: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly reasoning_tokens: number
  readonly total_tokens: number
  readonly duration_ms: number
}

export interface UsageRow extends Measures {
  readonly key?: string
  readonly key_name?: string | null
  readonly model?: string
  readonly account?: string
  readonly account_identifier?: string | null
  readonly style?: string
  readonly hour?: string
  readonly day?: string
}
