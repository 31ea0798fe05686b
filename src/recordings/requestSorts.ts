/** What a list of records can be sorted by. The console imports it with the contract. */
export const requestSorts = ["started_at", "duration_ms", "first_event_ms", "cost", "total_tokens"] as const

export type RequestSort = (typeof requestSorts)[number]
