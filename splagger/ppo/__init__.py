"""PPO for agents with a memory. `splagger.ppo.train` is the loop; the other files are its parts."""
