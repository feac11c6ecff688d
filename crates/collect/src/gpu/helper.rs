//! Driver calls in a process of their own, so that a driver that never answers takes a helper with it and not the agent.
//!
//! [`protocol`] is what the two say to each other, in frames of [`wire`] over one socket that is the helper's standard
//! input. In the helper, [`serve`] listens to the agent and a [`station`] has a thread by each GPU. In the agent,
//! [`supervisor`] starts helpers, hears them and ends them, as the [`roster`] decides: which helper serves which GPUs, who
//! is sick, when to try again.
//!
//! A helper ends by itself when its agent is gone: the socket closes, the library is shut down in order, and a driver that
//! will not let go is left behind. Nothing that arrives from a helper can make the agent fail.

mod protocol;
mod roster;
mod wire;
