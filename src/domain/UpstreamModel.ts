/** The model that a request resolved to. `id` is a native id, or another id of `upstream.models`. */
export interface UpstreamModel {
  readonly id: string
  /** Whether its reasoning is shown; `auto`: if the upstream sends any. */
  readonly reasoning: boolean | "auto"
  readonly search: boolean
}
