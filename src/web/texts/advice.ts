/**
 * What attempts failed with, and what to do about an error, in English. The console shows it beside a failed request, and the error
 * reference (`docs/reference/errors.md`) is made of it.
 */

/** What a try at an upstream failed with. */
export const causeNames: Readonly<Record<string, string>> = {
  account_busy: "Account busy",
  account_suspended: "Account suspended",
  caller_mistake: "Request refused",
  cut_off: "Connection lost",
  disagreement: "Reply not understood",
  empty_reply: "Empty reply",
  endpoint_missing: "No such endpoint",
  exhausted: "Too many attempts",
  forbidden: "Forbidden",
  key_missing: "Key missing",
  login_refused: "Login refused",
  model_unavailable: "Model unavailable",
  overdue: "Out of time",
  overloaded: "Overloaded",
  prompt_too_long: "Prompt too long",
  proxy_failed: "Proxy failed",
  quota_exhausted: "Quota exhausted",
  rate_limited: "Rate limited",
  request_too_large: "Request too large",
  session_gone: "Session gone",
  shutting_down: "Gateway shutting down",
  timed_out: "Timed out",
  token_refused: "Token refused",
  unreachable: "No connection",
  upstream_trouble: "Server error",
  withdrawn: "Withdrawn by the content filter"
}

/** What to do about an error code, or about what a try failed with. */
export const adviceTexts: Readonly<Record<string, string>> = {
  account: "Test the account, or disable it.",
  account_busy: "Another program uses the account at the same time. Add accounts, or keep this one for the gateway.",
  account_suspended: "The provider closed the account. Delete it, or settle it with the provider.",
  authentication_failed: "Check the client's gateway key, or its token of the upstream.",
  caller: "Correct the request, and send it again.",
  caller_mistake: "The upstream refuses this request itself. Correct what the message names.",
  config_not_saved: "Check that the gateway may write its configuration file.",
  conflict: "Another call changed the same object at the same time. Send the request again.",
  content_filter: "Rephrase the prompt. The provider filters it for every account.",
  context_length_exceeded: "Shorten the conversation, or use a model with a larger context.",
  cut: "Raise the client's token limit, or ask for a shorter answer.",
  cut_off:
    "The connection broke during the reply. Send the request again. If it happens often, check the network and proxies in between.",
  disagreement:
    "The gateway could not read what the upstream sent. Compare the upstream's events in the request record, and check the upstream's driver.",
  embeddings_unavailable:
    "Set embeddings.provider to upstream, and use a model whose upstream has embeddings, or to builtin.",
  empty_reply: "Send the request again. If it stays empty, test the account with this model.",
  endpoint_missing: "Check the upstream's base URL: its server has no such path.",
  exhausted: "All permitted attempts failed. Check each one.",
  forbidden: "The provider does not allow the account to do this. Check its rights, region and proxy.",
  gateway: "Search the gateway's log for the request id.",
  invalid_stream_id: "Correct the name of the lane, stream_id, in the client's message.",
  internal_error: "This is a defect of the gateway. Search its log for the request id, and report it.",
  key_missing: "Add an API key for this upstream.",
  left: "The client closed the connection. If it happens often, compare the client's timeout with the duration.",
  leftEarly:
    "The client closed the connection before a reply began. If it happens often, raise the client's timeout, or add accounts.",
  locked: "Change the file that the message names.",
  login_refused: "Check the account's password, then test the account.",
  method_not_allowed: "Check the method and the URL of the call.",
  model_not_allowed: "Allow the model for this key, or use a model that the key allows.",
  role_not_allowed: "Sign in with the role admin.",
  model_not_found: "Use a model that the gateway serves, or add an alias or a route for this name.",
  vendor_login_required:
    "The upstream needs the client's own login: send it in Authorization, and the gateway key in x-gateway-key.",
  model_not_priced: "Add a price for the model: the key has a cost limit.",
  model_unavailable: "Check that the upstream still serves this model, or change the route.",
  no_account_available: "Add accounts, or repair the accounts that are out of rotation.",
  not_found: "Check the URL of the call.",
  overdue: "Send the request again with a shorter prompt, or raise the time limit.",
  overloaded: "Try again later, or add another target to the route.",
  own_token: "The client uses a direct token. Only its holder can repair or replace it.",
  previous_response_not_found:
    "The request continues a response that is unknown or no longer stored. Send the whole conversation instead.",
  prompt_too_long: "Shorten the conversation, or use a model with a larger context.",
  proxy_failed: "Check the account's proxy: its URL, its credentials, and that it runs.",
  queue_full:
    "Too many requests wait for an account, or too many large ones are in progress. Add accounts, or raise runtime.account_max_queue or limits.buffered_bytes.",
  queued: "All suitable accounts are in use or cooling down.",
  quota_exhausted: "Top up the account, or wait until its quota is renewed.",
  rate_limit_exceeded:
    "The key has reached its limit. Wait for the time in Retry-After, or raise the key's limits; for WebSockets, limits.key_websockets.",
  rate_limited:
    "The account has reached the provider's rate limit and cools down. Add accounts, or lower the concurrency per account.",
  request_timeout:
    "The client sent its request too slowly. Check its network, or change limits.body_seconds, limits.body_bytes_per_second or limits.body_total_seconds.",
  request_too_large: "Send less, such as smaller images, or raise limits.body_bytes.",
  session_gone: "The upstream lost the conversation. Send the request again.",
  shutting_down: "The gateway was stopping. Send the request again.",
  store_unavailable: "Check the store: the gateway cannot connect to it.",
  timed_out: "The upstream was silent for too long. Send the request again, or raise the upstream's timeouts.",
  token_refused: "Test the account. If its token is refused again, replace it.",
  tool_choice_violation:
    "The model did not call the tool that the request demands. Send it again, or use another model.",
  unknown_reference:
    "The request refers to an id that is unknown or no longer stored. Send the whole conversation instead.",
  unreachable: "Check the upstream's server, its base URL, its name in DNS and the network.",
  unsupported_media_type: "Send JSON, with content-type application/json.",
  upgrade_required: "Send a POST, or open a WebSocket. The setting server.websockets may be off.",
  upstream: "Send the request again later, or route the model to another upstream.",
  upstream_empty_output: "Send the request again. If it stays empty, test the account with this model.",
  upstream_error: "Send the request again later, test the upstream, or route the model to another one.",
  upstream_rate_limited: "Every suitable account has reached the provider's rate limit. Add accounts, or wait.",
  upstream_timeout: "The upstream was silent for too long. Send the request again, or raise the upstream's timeouts.",
  upstream_trouble: "Send the request again later, test the upstream, or route the model to another one.",
  websocket_connection_limit_reached:
    "The connection was too old or held too much. The client opens another one. Raise limits.websocket_seconds or limits.websocket_bytes if it happens often.",
  websocket_stream_limit_reached: "Use fewer lanes (stream_id) on one connection, or open another one.",
  withdrawn: "Rephrase the prompt. The provider filters it for every account."
}
