"""Images of robots, rendered off-screen by MuJoCo through EGL or OSMesa."""

import ctypes.util
import functools as ft
import importlib
import os
import platform

import numpy as np

from splagger.envs import pictures
from splagger.envs.mujoco.exact import to_float64
from splagger.envs.mujoco.physics import RobotState
from splagger.envs.mujoco.simulations import Robot, library, load
from splagger.errors import SettingError

WIDTH, HEIGHT = 576, 384
# MuJoCo's name → required library, in order of preference
LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}


def photograph(
    robot: Robot, state: RobotState, title: str, task: str, episode: int, episodes: int
) -> np.ndarray:
    """Returns an image of the robot from the side, under a heading, with a description of the task."""
    model = load(robot)
    position = to_float64(np.asarray(state.physics))[1 : 1 + model.nq]
    picture = _camera(robot).shoot(position)
    return pictures.robot(picture, title, task, episode + 1, episodes, int(state.time))


class Camera:
    """A camera that follows one robot from the side."""

    def __init__(self, robot: Robot):
        mujoco = library()
        self.model = load(robot)
        self.data = mujoco.MjData(self.model)
        self.scene = mujoco.MjvScene(self.model, maxgeom=100)
        self.view = mujoco.MjvCamera()
        self.view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self.view.fixedcamid = self.model.camera("track").id
        self.frame = mujoco.MjrRect(0, 0, WIDTH, HEIGHT)
        self.screen = _screen()
        self.screen.make_current()
        self.renderer = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.renderer)

    def shoot(self, position: np.ndarray) -> np.ndarray:
        """Returns an image [HEIGHT, WIDTH, 3] of the robot with these joint positions."""
        mujoco = library()
        self.screen.make_current()
        self.data.qpos[:] = position
        mujoco.mj_forward(self.model, self.data)
        every = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(
            self.model, self.data, mujoco.MjvOption(), None, self.view, every, self.scene
        )
        mujoco.mjr_render(self.frame, self.scene, self.renderer)
        pixels = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, self.frame, self.renderer)
        return pixels[::-1]  # OpenGL numbers rows from the bottom


@ft.cache
def _camera(robot: Robot) -> Camera:
    try:
        return Camera(robot)
    except Exception as error:  # each OpenGL implementation raises its own
        raise SettingError(
            f"MuJoCo cannot draw here ({error}). Install EGL (Debian: libegl1) or OSMesa (libosmesa6); "
            "MUJOCO_GL=egl or MUJOCO_GL=osmesa selects one of them"
        ) from error


def _screen():
    """Creates the OpenGL context named by MUJOCO_GL. The default on Linux is the first installed of `LIBRARIES`."""
    if os.environ.get("MUJOCO_GL") or platform.system() != "Linux":
        return library().GLContext(WIDTH, HEIGHT)
    for name, needed in LIBRARIES.items():
        if ctypes.util.find_library(needed):
            return importlib.import_module(f"mujoco.{name}").GLContext(WIDTH, HEIGHT)
    raise RuntimeError("no OpenGL library for off-screen rendering is installed")
