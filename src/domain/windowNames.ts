/** The time windows of limits and budgets, shortest first. */
export const windowNames = ["minute", "hour", "day", "week", "month"] as const
