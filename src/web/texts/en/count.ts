/** A number with what it counts. */
export type Count = (n: number, one: string, many: string) => string
