"""The input of MQSim for the work of the flash card's bench, and MQSim's process on it.

MQSim is a simulator of flash devices in C++ (github.com/CMU-SAFARI/MQSim). Its device here is the default flash card of
the model: 16 dies on 4 channels of 333 MB/s, pages of 4 KiB, blocks of 64 pages, 25, 250 and 2,000 us, 1 GiB and a
third more flash, greedy collection, the whole mapping in memory, no read or write interrupted. The load is the same: 32
writes of one page at once, uniformly random, on a device that starts erased. One difference remains: MQSim acknowledges
a write when it is programmed (its cache is off), the card when it is in the buffer.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

CHANNELS = 4
WRITERS = 32
"""Writes at once."""
_BLOCKS = 341
"""Blocks of each die: 1 GiB and a third more, in 16 dies."""
_HOST = {
    "PCIe_Lane_Bandwidth": "1.0",
    "PCIe_Lane_Count": "4",
    "SATA_Processing_Delay": "400000",
    "Enable_ResponseTime_Logging": "false",
    "ResponseTime_Logging_Period_Length": "1000000",
}
_DEVICE = {
    "Seed": "321",
    "Enabled_Preconditioning": "false",
    "Memory_Type": "FLASH",
    "HostInterface_Type": "NVME",
    "IO_Queue_Depth": "65535",
    "Queue_Fetch_Size": "512",
    "Caching_Mechanism": "SIMPLE",
    "Data_Cache_Sharing_Mode": "SHARED",
    "Data_Cache_Capacity": "4194304",
    "Data_Cache_DRAM_Row_Size": "8192",
    "Data_Cache_DRAM_Data_Rate": "100",
    "Data_Cache_DRAM_Data_Busrt_Size": "1",
    "Data_Cache_DRAM_tRCD": "13",
    "Data_Cache_DRAM_tCL": "13",
    "Data_Cache_DRAM_tRP": "13",
    "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true",
    "CMT_Capacity": "2097152",
    "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP",
    "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER",
    "Overprovisioning_Ratio": "0.25",
    "GC_Exec_Threshold": "0.05",
    "GC_Block_Selection_Policy": "GREEDY",
    "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "false",
    "GC_Hard_Threshold": "0.005",
    "Dynamic_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Enabled": "false",
    "Static_Wearleveling_Threshold": "100",
    "Preferred_suspend_erase_time_for_read": "700000",
    "Preferred_suspend_erase_time_for_write": "700000",
    "Preferred_suspend_write_time_for_read": "100000",
    "Flash_Channel_Count": str(CHANNELS),
    "Flash_Channel_Width": "1",
    "Channel_Transfer_Rate": "333",
    "Chip_No_Per_Channel": "4",
    "Flash_Comm_Protocol": "NVDDR2",
}
_FLASH = {
    "Flash_Technology": "SLC",
    "CMD_Suspension_Support": "ERASE",
    **{f"Page_Read_Latency_{bit}": "25000" for bit in ("LSB", "CSB", "MSB")},
    **{f"Page_Program_Latency_{bit}": "250000" for bit in ("LSB", "CSB", "MSB")},
    "Block_Erase_Latency": "2000000",
    "Block_PE_Cycles_Limit": "10000",
    "Suspend_Erase_Time": "700000",
    "Suspend_Program_Time": "100000",
    "Die_No_Per_Chip": "1",
    "Plane_No_Per_Die": "1",
    "Block_No_Per_Plane": str(_BLOCKS),
    "Page_No_Per_Block": "64",
    "Page_Capacity": "4096",
    "Page_Metadat_Capacity": "448",
}
_FLOW = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "TURNED_OFF",
    "Channel_IDs": "0,1,2,3",
    "Chip_IDs": "0,1,2,3",
    "Die_IDs": "0",
    "Plane_IDs": "0",
    "Initial_Occupancy_Percentage": "0",
    "Working_Set_Percentage": "100",
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Read_Percentage": "0",
    "Address_Distribution": "RANDOM_UNIFORM",
    "Percentage_of_Hot_Region": "0",
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": "8",
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": "8",
    "Variance_Request_Size": "0",
    "Seed": "798",
    "Average_No_of_Reqs_in_Queue": str(WRITERS),
    "Intensity": "32768",
    "Stop_Time": "0",
}


@dataclass(frozen=True)
class Work:
    """What a simulation of the card did, and the CPU time of its whole process."""

    host_writes: int
    programs: int
    erases: int
    cpu_s: float


def run(program: Path, writes: int) -> Work:
    """Run MQSim on so many writes."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-mqsim-") as name:
        folder = Path(name)
        device, load = folder / "device.xml", folder / "load.xml"
        device.write_text(_device())
        load.write_text(_load(writes))
        cpu_s, _ = cpu_of([str(program.resolve()), "-i", str(device), "-w", str(load)])
        return _work(folder / "load_scenario_1.xml", cpu_s)


def cpu_of(command: list[str]) -> tuple[float, str]:
    """Run a command; return its CPU time [s] and its standard output."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}: {text[-500:]}")
    return usage.ru_utime + usage.ru_stime, text


def _work(results: Path, cpu_s: float) -> Work:
    tree = ET.parse(results)
    requests = tree.findtext(".//Write_Request_Count")
    counts = tree.find(".//SSDDevice.FTL")
    if requests is None or counts is None:
        raise SystemExit(f"{results} has no counts of writes: is this MQSim?")
    programs = int(counts.attrib["Issued_Flash_Program_CMD"])
    return Work(int(requests), programs, int(counts.attrib["Issued_Flash_Erase_CMD"]), cpu_s)


def _filled(name: str, *parts: dict[str, str] | ET.Element) -> ET.Element:
    """An element with a child for each key, and with further elements."""
    whole = ET.Element(name)
    for part in parts:
        if isinstance(part, ET.Element):
            whole.append(part)
            continue
        for key, value in part.items():
            ET.SubElement(whole, key).text = value
    return whole


def _device() -> str:
    device = _filled("Device_Parameter_Set", _DEVICE, _filled("Flash_Parameter_Set", _FLASH))
    whole = _filled("Execution_Parameter_Set", _filled("Host_Parameter_Set", _HOST), device)
    return ET.tostring(whole, encoding="unicode")


def _load(writes: int) -> str:
    flow = _filled("IO_Flow_Parameter_Set_Synthetic", _FLOW, {"Total_Requests_To_Generate": str(writes)})
    return ET.tostring(_filled("MQSim_IO_Scenarios", _filled("IO_Scenario", flow)), encoding="unicode")
